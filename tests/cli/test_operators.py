"""inspect, list, break, backends, check: text for people, JSON for programs."""
import json
import math
import re
import socket
import threading
import time

import support
from support import CliTest


class OnSqlite(CliTest):
    def test_inspect_a_free_name(self):
        result = self.holdfast("inspect", "job")
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertIn('"job" is free', result.out)
        self.assertEqual(self.inspect("job")["held"], False)

    def test_inspect_a_held_name(self):
        holder = self.hold("job", "--label", "nightly")
        result = self.holdfast("inspect", "job")
        self.assertRegex(result.out, r'^"job" is held by \S+ \(pid \d+\) "nightly" for .*, token \d+, ')
        seen = self.inspect("job")
        self.assertEqual(seen["schema"], "holdfast.inspect/1")
        one = seen["holders"][0]
        self.assertEqual((one["pid"], one["note"]), (holder.pid, "nightly"))
        self.assertGreater(one["token"], 0)
        self.assertTrue(0 < one["ttl_left_ms"] <= 10_000)
        self.assertGreaterEqual(one["held_for_ms"], 0)
        self.assertFalse(one["foreign"])

    def test_names_cannot_write_to_the_terminal(self):
        name = 'a\x1b[31m\nb\u202e"\\'
        self.hold(name)
        for args in (("list",), ("list", "-l"), ("inspect", name)):
            result = self.holdfast(*args)
            self.assertEqual(result.code, 0, result)
            self.assertNotIn("\x1b", result.out)
            self.assertNotIn("\u202e", result.out)
            self.assertIn(r"a\u{1b}[31m\nb\u{202e}\"" + "\\\\", result.out)
        line = json.loads(self.holdfast("--json", "list").out)
        self.assertEqual(line["name"], name)

    def test_list(self):
        for name in ("a/1", "a/2", "b"):
            self.hold(name)
        self.assertEqual(self.holdfast("list").out, "a/1\na/2\nb\n")
        self.assertEqual(self.holdfast("list", "a/").out, "a/1\na/2\n")
        self.assertEqual(self.holdfast("list", "none").out, "")
        lines = [json.loads(x) for x in self.holdfast("--json", "list", "-l").out.splitlines()]
        self.assertEqual([x["name"] for x in lines], ["a/1", "a/2", "b"])
        self.assertTrue(all(x["schema"] == "holdfast.list/1" and x["holder"]["pid"] > 0
                            for x in lines))
        short = self.holdfast("list", "--limit", "2")
        self.assertEqual(short.out, "a/1\na/2\n")
        self.assertIn("there may be more", short.err)

    def test_a_name_that_begins_with_a_dash(self):
        result = self.holdfast("inspect", "--", "-n")
        self.assertEqual((result.code, result.out), (0, '"-n" is free\n'), result)

    def test_break_needs_force_without_a_terminal(self):
        holder = self.hold("job")
        result = self.holdfast("break", "job")
        self.assertEqual(result.code, 64, result)
        self.assertIn("--force", result.err)
        self.assertIsNone(holder.poll())

    def test_a_holder_without_a_token_is_not_meant_by_if_token(self):
        holder = self.hold("job", "--of", "2")
        result = self.holdfast("--json", "break", "--force", "--if-token", "7", "job")
        self.assertEqual(result.code, 1, result)
        self.assertIn("without a token, so --if-token 7 does not fit (name it with --owner)", result.err)
        self.assertIn("without a token", json.loads(result.out)["reason"])
        self.assertIsNone(holder.poll())
        owner = self.inspect("job")["holders"][0]["owner"]
        self.assertEqual(self.holdfast("break", "--force", "--owner", owner, "job").code, 0)

    def test_json_also_where_nothing_was_done(self):
        said = json.loads(self.holdfast("--json", "break", "--force", "job").out)
        self.assertEqual((said["schema"], said["broken"], said["reason"]),
                         ("holdfast.break/1", False, '"job" is not held'))
        said = json.loads(self.holdfast("--json", "ask", "job").out)
        self.assertEqual(said, {"schema": "holdfast.ask/1", "name": "job", "holders": []})
        self.hold("job")
        said = json.loads(self.holdfast("--json", "break", "--force", "job").out)
        self.assertTrue(said["broken"])

    def test_another_size_of_a_semaphore_is_told_the_right_one(self):
        self.hold("job", "--of", "5")
        result = self.holdfast("run", "-n", "--of", "3", "job", "--", "true")
        self.assertEqual(result.code, 69, result)
        self.assertIn("Others use it with --of 5: give the same number.", result.err)

    def test_break_what_nobody_holds(self):
        result = self.holdfast("break", "--force", "job")
        self.assertEqual(result.code, 1, result)
        self.assertIn("is not held", result.err)

    def test_break_another_token(self):
        holder = self.hold("job")
        token = self.inspect("job")["holders"][0]["token"]
        result = self.holdfast("break", "--force", "--if-token", str(token + 1), "job")
        self.assertEqual(result.code, 1, result)
        self.assertIsNone(holder.poll())
        result = self.holdfast("--json", "break", "--force", "--if-token", str(token), "job")
        self.assertEqual(result.code, 0, result)
        said = json.loads(result.out)
        self.assertEqual((said["schema"], said["holder"]["token"]), ("holdfast.break/1", token))
        self.assertEqual(holder.wait(timeout=10), 76)
        self.assertIn("an operator broke it", holder.stderr.read())

    def test_break_now_frees_at_once(self):
        holder = self.hold("job", "--ttl", "20s")
        self.assertNotIn("last_break", self.inspect("job"))
        result = self.holdfast("break", "--now", "--force", "--note", "alice: disk full", "job")
        self.assertEqual(result.code, 0, result)
        record = self.inspect("job")["last_break"]
        self.assertEqual((record["note"], record["now"]), ("alice: disk full", True))
        self.assertRegex(record["at"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertRegex(self.holdfast("inspect", "job").out,
                         rf'broken {record["at"]} \(--now\) by \S+ \(pid \d+\) "alice: disk full": '
                         rf'the lease of \S+ \(pid {holder.pid}\)')
        self.assertIn("two holders are possible", result.err)
        self.assertEqual(self.holdfast("run", "-n", "job", "--", "true").code, 0)
        self.assertEqual(holder.wait(timeout=15), 76)

    def test_break_without_now_waits_for_the_last_validity(self):
        # Two commands have to fit into the ttl, on a busy machine, too.
        start = time.monotonic()
        self.assertEqual(self.holdfast("run", "-n", "another", "--", "true").code, 0)
        ttl = 3 + math.ceil(6 * (time.monotonic() - start))
        holder = self.hold("job", "--ttl", f"{ttl}s")
        result = self.holdfast("--json", "break", "--force", "job")
        self.assertTrue(0 < json.loads(result.out)["free_in_ms"] <= ttl * 1000, result)
        self.assertEqual(self.holdfast("run", "-n", "job", "--", "true").code, 75)
        self.assertEqual(holder.wait(timeout=ttl + 10), 76)
        self.assertEqual(self.holdfast("run", "-w", str(ttl + 10), "job", "--", "true").code, 0)

    def test_backends(self):
        result = self.holdfast("--json", "backends", url=None)
        self.assertEqual(result.code, 0, result)
        said = json.loads(result.out)
        self.assertEqual(said["schema"], "holdfast.backends/1")
        names = [b["name"] for b in said["backends"]]
        self.assertTrue({"memory", "sqlite", "redis"} <= set(names), names)
        text = self.holdfast("backends", url=None).out
        for backend in said["backends"]:
            self.assertIn(backend["example"], text)
        one = json.loads(self.holdfast("--json", "backends").out)["backends"]
        self.assertEqual([b["name"] for b in one], ["sqlite"])
        self.assertIn("fencing", one[0]["capabilities"])


class HostileServer(CliTest):
    def test_what_a_server_says_cannot_write_to_the_terminal(self):
        """A server that answers everything with an error that retitles the terminal."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            while True:
                try:
                    connection, _ = listener.accept()
                    with connection:
                        while connection.recv(4096):
                            connection.sendall(b"-ERR \x1b]0;owned\x07 \xc2\x9b31m\xe2\x80\xae\r\n")
                except OSError:
                    if listener.fileno() < 0:
                        return
        threading.Thread(target=serve, daemon=True).start()
        url = f"redis://127.0.0.1:{listener.getsockname()[1]}"
        for args in (("list",), ("inspect", "job"), ("break", "--force", "job"), ("backends",),
                     ("run", "-n", "job", "--", "true")):
            result = self.holdfast(*args, url=url)
            self.assertNotEqual(result.code, 0, result)
            self.assertIn("owned", result.err)
            for mark in ("\x1b", "\x07", "\x9b", "\u202e"):
                self.assertNotIn(mark, result.err + result.out)


class OnRedis(support.OnOneRedis, OnSqlite):
    def test_backends(self):
        one = json.loads(self.holdfast("--json", "backends").out)["backends"]
        self.assertEqual([b["name"] for b in one], ["redis"])

    def test_waiters_are_shown_in_line(self):
        self.hold("job")
        waiters = [self.start("run", "job", "--", "true") for _ in range(3)]
        support.until(lambda: len(self.inspect("job")["waiters"]) == 3, "three in line")
        self.assertEqual({w["pid"] for w in self.inspect("job")["waiters"]},
                         {w.pid for w in waiters})
        self.assertRegex(self.holdfast("inspect", "job").out, r"(?m)^  3\. waits: ")

    def test_the_server_that_answered_is_named(self):
        where = re.search(r"127\.0\.0\.1:\d+", self.url)[0]
        self.assertIn(f"  served by {where}\n", self.holdfast("-v", "inspect", "job").out)
        self.assertNotIn("served by", self.holdfast("inspect", "job").out)
        self.assertEqual(self.inspect("job")["server"], where)


class Doctor(CliTest):
    def test_exit_codes_and_words(self):
        server = support.Redis("--appendonly")
        self.addCleanup(server.close)
        sound = self.holdfast("doctor", server.url, url=None)
        self.assertEqual((sound.code, sound.err), (0, ""), sound)
        self.assertRegex(sound.out, r"^redis://\S+: class B\nserved by 127\.0\.0\.1:\d+\n\d+ checks: 0 unsafe, 0 unknown, 0 slow, \d+ sound\n$")
        self.assertIn("sound    redis.fsync\n", self.holdfast("-v", "doctor", server.url, url=None).out)
        slow = self.holdfast("doctor", server.url + "?ttl=500ms", url=None)
        self.assertEqual(slow.code, 1, slow)
        self.assertIn("slow     config.ttl\n         the ttl is 500ms\n         so: ", slow.out)
        bare = support.Redis()
        self.addCleanup(bare.close)
        unsafe = self.holdfast("doctor", bare.url, url=None)
        self.assertEqual(unsafe.code, 2, unsafe)
        self.assertRegex(unsafe.out, r"class D\nserved by \S+\nunsafe   redis.persistence\n.*\n         so: .*\n         do: ")
        # Whether Debian's SQLite was mended cannot be asked.
        unknown = self.holdfast("doctor", "sqlite://" + self.path("locks.db"), url=None)
        self.assertEqual(unknown.code, 3 if "sqlite.version" in unknown.out else 0, unknown)

    def test_a_finding_that_was_looked_at_is_accepted(self):
        bare = support.Redis()
        self.addCleanup(bare.close)
        seen = json.loads(self.holdfast("--json", "doctor", bare.url, url=None).out)
        found = sorted({f["id"] for f in seen["findings"] if f["verdict"] != "sound"})
        accept = [word for one in found for word in ("--accept", one)]
        result = self.holdfast("doctor", *accept, bare.url, url=None)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"(?m)^unsafe   redis.persistence \(accepted\)$")
        said = json.loads(self.holdfast("--json", "doctor", *accept, bare.url, url=None).out)
        self.assertEqual(said["verdict"], "sound")
        self.assertTrue(all(f.get("accepted") for f in said["findings"] if f["verdict"] != "sound"), said)
        rest = self.holdfast("doctor", "--accept", "redis.persistense", bare.url, url=None)
        self.assertEqual(rest.code, 2, rest)
        self.assertIn('--accept "redis.persistense": there is no such check here', rest.err)

    def test_json(self):
        bare = support.Redis()
        self.addCleanup(bare.close)
        result = self.holdfast("--json", "--url", bare.url, "doctor", url=None)
        self.assertEqual(result.code, 2, result)
        seen = json.loads(result.out)
        self.assertEqual((seen["schema"], seen["verdict"], seen["safety"]), ("holdfast.doctor/1", "unsafe", "D"))
        one = next(f for f in seen["findings"] if f["id"] == "redis.persistence")
        self.assertTrue(one["found"] and one["consequence"] and one["remedy"] and one["where"] == bare.url, one)
        self.assertNotIn("remedy", next(f for f in seen["findings"] if f["verdict"] == "sound"))

    def test_a_password_is_not_repeated(self):
        server = support.Redis("--appendonly", "--password=open-sesame")
        self.addCleanup(server.close)
        self.assertIn("open-sesame", server.url)
        result = self.holdfast("-v", "doctor", server.url, url=None)
        self.assertEqual(result.code, 2, result)
        self.assertIn("unsafe   config.password\n", result.out)
        self.assertIn("other users of this machine could briefly read the password", result.err)
        self.assertNotIn("open-sesame", result.out + result.err)

    def test_bad_use(self):
        twice = self.holdfast("--url", "memory:", "doctor", "memory:", url=None)
        self.assertEqual(twice.code, 64, twice)
        gone = self.holdfast("doctor", "redis://127.0.0.1:1", url=None)
        self.assertEqual((gone.code, gone.out), (69, ""), gone)


if __name__ == "__main__":
    support.main()
