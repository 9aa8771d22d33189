"""The demonstrations: within 20 seconds each, exit 0, and loud when locking is off."""
import re
import time

import support
from support import CliTest


class OnSqlite(CliTest):
    where = None

    def demo(self, scene):
        began = time.monotonic()
        result = self.holdfast("demo", scene, "--seed", "7", url=self.where, timeout=60)
        self.assertEqual(result.code, 0, result)
        self.assertLess(time.monotonic() - began, 20)
        self.assertIn("seed 7\n", result.out)
        return result.out

    def test_counter(self):
        out = self.demo("counter")
        self.assertIn("with the lock:    400 of 400\n", out)
        lost = int(re.search(r"\((\d+) increments lost\)", out).group(1))
        self.assertGreater(lost, 0, "without the lock nothing was lost: the witness is blind")

    def test_oversell(self):
        out = self.demo("oversell")
        self.assertIn("with the lock:    10 sold of 10\n", out)
        self.assertGreater(int(re.search(r"without the lock: (\d+) sold", out).group(1)), 10)

    def test_queue(self):
        out = self.demo("queue")
        served = re.search(r"served in this order: ([\d ]+)\n", out).group(1).split()
        self.assertEqual(sorted(served), list("12345678"))

    def test_takeover(self):
        out = self.demo("takeover")
        tokens = [int(t) for t in re.findall(r"worker \d (?:holds|acquired) .*token (\d+)", out)]
        self.assertEqual(len(tokens), 3)
        self.assertTrue(tokens[0] < tokens[1] < tokens[2])
        self.assertIn(f"writes with token {tokens[1]}: refused\n", out)
        self.assertIn(f"the store has: {tokens[2]} worker-3\n", out)

    def test_a_tour_without_a_word(self):
        began = time.monotonic()
        result = self.holdfast("demo", url=self.where, env={"LC_ALL": "C.UTF-8"}, timeout=60)
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertLess(time.monotonic() - began, 20)
        out = result.out
        lost = int(re.search(r"without +\S+ +\d+ of 400, (\d+) lost\n", out).group(1))
        self.assertGreater(lost, 0, out)
        self.assertRegex(out, r"with the lock  \u2588{40} 400 of 400\n")
        rows = re.findall(r"  worker (\d)  (.{60}) token (\d+): (.*)\n", out)
        self.assertEqual([r[0] for r in rows], ["1", "2", "3"], out)
        self.assertEqual([r[3] for r in rows], ["killed", "write refused", "write accepted"])
        tokens = [int(r[2]) for r in rows]
        self.assertTrue(tokens[0] < tokens[1] < tokens[2], out)
        # The second one is paused until after the third one holds the lock; nobody holds it beside another.
        held = [{i for i, c in enumerate(r[1]) if c == "\u2588"} for r in rows]
        self.assertTrue(all(held), out)
        self.assertLess(max(held[0]), min(held[1]), out)
        self.assertLess(max(held[1]), min(held[2]), out)
        self.assertIn("it refused the stale write.\n", out)

    def test_ascii_where_the_locale_is(self):
        out = self.holdfast("demo", url=self.where, env={"LC_ALL": "C"}, timeout=60).out
        self.assertTrue(out.isascii(), out)
        self.assertIn("#" * 40, out)

    def test_unknown_scene(self):
        self.assertEqual(self.holdfast("demo", "magic", url=None).code, 64)


class OnRedis(OnSqlite):
    @classmethod
    def setUpClass(cls):
        cls.server = support.Redis()
        cls.where = cls.server.url

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def test_queue(self):
        self.assertIn("served in this order: 1 2 3 4 5 6 7 8\n", self.demo("queue"))


if __name__ == "__main__":
    support.main()
