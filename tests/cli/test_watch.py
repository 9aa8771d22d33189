"""inspect --watch: each change to a pipe, in place on a terminal, and on through an outage."""
import json
import os
import pty
import re
import select
import signal
import time

import support
from support import CliTest, until

CLEAR = re.compile(r"\r\x1b\[(\d+)A\x1b\[J")


class Lines:
    """What a process writes, line by line; asked for with a cap."""

    def __init__(self, process):
        self.fd, self.seen = process.stdout.fileno(), b""
        os.set_blocking(self.fd, False)

    def next(self, cap=support.CAP):
        """The next line; nothing within `cap`: None."""
        end = time.monotonic() + cap
        while b"\n" not in self.seen:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                return None
            more = os.read(self.fd, 65536)
            if not more:
                return None
            self.seen += more
        line, self.seen = self.seen.split(b"\n", 1)
        return line.decode()


class Watch(CliTest):
    def watch(self, *options, **more):
        process = self.start("inspect", "--watch=0.1", *options, "job", **more)
        return process, Lines(process)

    def test_a_pipe_gets_each_change_and_nothing_else(self):
        process, lines = self.watch()
        stamp = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
        self.assertRegex(lines.next(), stamp + '"job" is free$')
        holder = self.hold("job", "--label", "nightly", "--ttl", "1s")
        self.assertRegex(lines.next(), stamp + r'"job" is held by \S+ \(pid \d+\) "nightly" for .* left')
        # Ten looks and more, and several renewals: only times change.
        self.assertIsNone(lines.next(cap=1.2))
        holder.terminate()
        self.assertRegex(lines.next(), stamp + '"job" is free$')
        self.assertRegex(lines.next(), r"^  last token \d+$")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=support.CAP), 0)
        self.assertIsNone(lines.next(cap=0.1))
        self.assertEqual(process.stderr.read(), "")

    def test_json_is_a_line_for_each_change(self):
        process, lines = self.watch("--json")
        first = json.loads(lines.next())
        self.assertEqual((first["schema"], first["held"]), ("holdfast.inspect/1", False))
        self.assertRegex(first["time"], r"^\d{4}-.*Z$")
        holder = self.hold("job", "--ttl", "1s")
        second = json.loads(lines.next())
        self.assertEqual(second["holders"][0]["pid"], holder.pid)
        self.assertIsNone(lines.next(cap=1.2))
        # Its time left has gone up and down since the last line.
        self.assertEqual(self.holdfast("break", "--force", "job").code, 0)
        third = json.loads(lines.next())
        if third["held"]:  # revoked, before it is free
            self.assertTrue(third["holders"][0]["revoked"])
            self.assertTrue(third["holders"][0]["renewed_within_ms"] >= 0)
            third = json.loads(lines.next())
        self.assertFalse(third["held"])
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=support.CAP), 0)

    def test_an_outage_is_a_change(self):
        server = support.Redis()
        self.addCleanup(server.close)
        process, lines = self.watch(url=server.url)
        self.assertRegex(lines.next(), '"job" is free$')
        server.say("kill")
        self.assertRegex(lines.next(), '"job": the server could not be reached; looking again every 100 ms$')
        self.assertIsNone(lines.next(cap=0.5))
        server.say("restart")
        self.assertRegex(lines.next(), '"job" is free$')
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=support.CAP), 0)

    def test_an_outage_in_json(self):
        process, lines = self.watch("--json", url="redis://127.0.0.1:1")
        said = json.loads(lines.next())
        self.assertEqual(said["error"], "the server could not be reached")
        self.assertNotIn("held", said)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=support.CAP), 0)

    def test_a_terminal_is_redrawn_in_place(self):
        self.hold("job", "--ttl", "1s")
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        process = self.start("inspect", "--watch=0.1", "job", env={"TERM": "xterm"}, stdin=theirs, stdout=theirs)
        os.close(theirs)
        seen = ""

        def drawn(pattern):
            nonlocal seen
            if select.select([ours], [], [], 0)[0]:
                seen += os.read(ours, 65536).decode()
            return re.search(pattern, seen)
        until(lambda: drawn(r"last\s+renewal\s+at\s+most\s+\d"), "a renewal is seen")
        count = len(CLEAR.findall(seen))
        until(lambda: drawn("") and len(CLEAR.findall(seen)) > count + 2, "it goes on")
        # The holder, wrapped, and the time; as many lines are taken away before the next.
        frames = CLEAR.split(seen.replace("\r\n", "\n"))
        for lines, before in zip(frames[1::2], frames[0:-1:2]):
            self.assertEqual(before.count("\n"), int(lines), before)
            self.assertRegex(before, r'^"job" is held by [^"]*\n\S+Z, every 100 ms; \^C ends this\n$')
            self.assertTrue(all(len(line) < 80 for line in before.splitlines()), before)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=support.CAP), 0)

    def test_it_ends_when_nobody_reads(self):
        process, lines = self.watch()
        self.assertIn("is free", lines.next())
        process.stdout.close()
        self.assertEqual(process.wait(timeout=support.CAP), 0)
        process.stdout = None
        self.assertEqual(process.stderr.read(), "")

    def test_other_signals_are_no_success(self):
        process, lines = self.watch()
        self.assertIn("is free", lines.next())
        process.terminate()
        self.assertEqual(process.wait(timeout=support.CAP), 128 + signal.SIGTERM)

    def test_what_no_later_look_changes_ends_it(self):
        result = self.holdfast("inspect", "--watch", "x" * 600)
        self.assertEqual((result.code, result.out), (65, ""), result)

    def test_the_interval(self):
        for wrong in ("0.09", "0", "soon", "-1"):
            result = self.holdfast("inspect", f"--watch={wrong}", "job")
            self.assertEqual((result.code, result.out), (64, ""), result)
            self.assertIn("at least 100 ms", result.err)
        for right in ("--watch", "--watch=2", "--watch=250ms"):
            process = self.start("inspect", right, "job")
            self.assertIn("is free", Lines(process).next())
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=support.CAP), 0)


if __name__ == "__main__":
    support.main()
