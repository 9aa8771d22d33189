"""The command never outlives the lease: killed, stopped, cut off, broken, ignoring SIGTERM."""
import os
import signal
import sys

import support
from support import WRITER, CliTest, alive, boot_ns, children, guardian_of, stamps, until


class Overlap(CliTest):
    """Two runs of one lock, each with a command that writes the boot clock as long as it lives."""

    def setUp(self):
        super().setUp()
        self.stalls = support.Stalls()
        self.addCleanup(self.stalls.close)

    def writers(self, name):
        """Processes that have written to this log."""
        return sorted({pid for pid, _ in stamps(self.path(name))})

    def first(self, *options, **more):
        process = self.start("run", "--ttl", "2s", "--grace", "0.4", *options, "job", "--",
                             sys.executable, WRITER, self.path("first"), **more)
        self.until_running(process)
        until(lambda: len(self.writers("first")) == 2, "the command and its grandchild write")
        return process

    def second(self, **more):
        return self.start("run", "--ttl", "2s", "job", "--", sys.executable, WRITER,
                          self.path("second"), "--alone", **more)

    def gone(self):
        return not any(alive(pid) for pid in self.writers("first"))

    def assert_apart(self, deadline):
        """Everything of the first had ended before its deadline, and before the second began."""
        until(lambda: self.writers("second"), "the second has the lock")
        self.assertTrue(self.gone())
        last = max(ns for _, ns in stamps(self.path("first")))
        began = min(ns for _, ns in stamps(self.path("second")))
        self.assertLess(last, began)
        stalled = self.stalls.of_two()
        self.assertLess(last, deadline + stalled,
                        f"{(last - deadline) / 1e6} ms too late; {stalled / 1e6} ms are the machine's")

    def test_the_witness_notices_two(self):
        """Without a lock in common the same check must fail."""
        self.first()
        deadline = boot_ns() + 60_000_000_000
        self.start("run", "another", "--", sys.executable, WRITER, self.path("second"), "--alone")
        with self.assertRaises(AssertionError):
            self.assert_apart(deadline)

    def test_holdfast_is_killed(self):
        first = self.first()
        second = self.second()
        command = self.command_of(first.pid)
        guardian = guardian_of(first.pid)
        deadline = support.deadline_of(command)
        first.kill()
        first.wait()
        self.assert_apart(max(deadline, deadline_now(deadline, first)))
        until(lambda: not alive(guardian), "the guardian has ended")
        second.kill()
        self.assertIn("holdfast itself was killed", first.stderr.read())

    def test_a_killed_holdfast_does_not_wait_for_the_deadline(self):
        script = f"trap 'echo term >{self.path('term')}' TERM; while :; do sleep 0.05; done"
        first = self.hold("job", "--ttl", "60s", "--grace", "0.4", command=("sh", "-c", script))
        command = self.command_of(first.pid)
        first.kill()
        until(lambda: not alive(command), "the command is gone after the grace", cap=10)
        self.assertTrue(os.path.exists(self.path("term")), "SIGTERM came first")

    def test_holdfast_is_stopped(self):
        first = self.first()
        self.second()
        command = self.command_of(first.pid)
        first.send_signal(signal.SIGSTOP)
        until(lambda: support.state(first.pid) == "T", "it is stopped")
        deadline = support.deadline_of(command)
        self.assert_apart(deadline)
        first.send_signal(signal.SIGCONT)
        self.assertEqual(first.wait(timeout=10), 76)
        self.assertIn("LOST lock", first.stderr.read())

    def test_holdfast_is_stopped_and_then_killed(self):
        first = self.first()
        self.second()
        command = self.command_of(first.pid)
        first.send_signal(signal.SIGSTOP)
        until(lambda: support.state(first.pid) == "T", "it is stopped")
        deadline = support.deadline_of(command)
        first.kill()
        self.assert_apart(deadline)

    def test_an_operator_breaks_it(self):
        first = self.first()
        self.second()
        result = self.holdfast("break", "--force", "job")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(first.wait(timeout=10), 76)
        until(lambda: self.writers("second"), "the second has the lock")
        self.assertLess(max(ns for _, ns in stamps(self.path("first"))),
                        min(ns for _, ns in stamps(self.path("second"))))
        self.assertIn("an operator broke it", first.stderr.read())

    def test_the_server_is_away(self):
        server = support.Redis()
        self.addCleanup(server.close)
        first = self.first(url=server.url)
        command = self.command_of(first.pid)
        server.say("pause")
        self.assertEqual(first.wait(timeout=15), 76)
        self.assertTrue(self.gone())
        server.say("resume")
        err = first.stderr.read()
        self.assertIn('LOST lock "job": no renewal confirmed for', err)
        self.assertIn("Sent SIGTERM to the command; SIGKILL in", err)

    def test_the_guardian_is_killed(self):
        first = self.first()
        os.kill(guardian_of(first.pid), signal.SIGKILL)
        self.assertEqual(first.wait(timeout=10), 70)
        self.assertTrue(self.gone())
        self.assert_free("job")

    def test_before_the_command_starts(self):
        """Killed while it waits: nothing runs, no guardian stays."""
        self.hold("job")
        waiter = self.start("run", "job", "--", "touch", self.path("ran"))
        guardian = until(lambda: guardian_of(waiter.pid), "its guardian")
        waiter.kill()
        waiter.wait()
        until(lambda: not alive(guardian), "the guardian has ended")
        self.assertFalse(os.path.exists(self.path("ran")))


def deadline_now(before, process):
    """A renewal may have come between reading the deadline and the kill: at most one ttl later."""
    del process
    return before + 2_000_000_000


def in_folder(folder):
    """Living processes of this test, by their environment."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/environ", "rb") as f:
                if entry.isdigit() and b"HOME=" + folder.encode() + b"\0" in f.read() + b"\0":
                    found.append(int(entry))
        except OSError:
            pass
    return [pid for pid in found if alive(pid)]


class Leftovers(CliTest):
    def test_background_processes_of_the_group_are_stopped(self):
        script = "sleep 1000 & echo $!"
        result = self.holdfast("run", "job", "--", "sh", "-c", script + " >" + self.path("pid"))
        self.assertEqual(result.code, 0, result)
        self.assertIn("left processes behind", result.err)
        with open(self.path("pid")) as f:
            self.assertFalse(alive(int(f.read())))

    def test_a_daemon_with_its_own_session_stays(self):
        # The shell must not end before the other has left its session.
        script = ("setsid sleep 1000 >/dev/null 2>&1 & p=$!; echo $p; "
                  "until [ \"$(cut -d ' ' -f 6 /proc/$p/stat)\" = $p ]; do :; done")
        result = self.holdfast("run", "job", "--", "sh", "-c", script)
        pid = int(result.out)
        self.addCleanup(lambda: os.kill(pid, signal.SIGKILL))
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertTrue(alive(pid))

    def test_a_stopped_command_can_be_ended(self):
        holder = self.hold("job", "--max-hold", "1.5s", command=("sleep", "1000"))
        command = self.command_of(holder.pid)
        os.kill(command, signal.SIGSTOP)
        self.assertEqual(holder.wait(timeout=10), 76)
        self.assertFalse(alive(command))

    def test_a_command_that_forks_while_it_is_killed(self):
        script = "trap '' TERM; for i in $(seq 400); do setsid sleep 60 & done; wait"
        holder = self.start("run", "--max-hold", "1500ms", "job", "--", "bash", "-c", script)
        guardian = until(lambda: guardian_of(holder.pid), "its guardian")
        command = until(lambda: self.command_of(holder.pid), "the command")
        until(lambda: len(children(command)) > 20, "many sessions")
        self.assertEqual(holder.wait(timeout=15), 76)
        self.assertFalse(alive(guardian))
        self.assertEqual(in_folder(self.folder), [])


if __name__ == "__main__":
    support.main()
