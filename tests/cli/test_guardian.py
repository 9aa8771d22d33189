"""The command never outlives the lease: killed, stopped, cut off, broken, ignoring SIGTERM."""
import ctypes
import fcntl
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

import support
from support import CLI, WRITER, CliTest, alive, boot_ns, children, guardian_of, stamps, until


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
        defaults = [] if "--ttl" in options else ["--ttl", "2s", "--grace", "0.4"]
        process = self.start("run", *defaults, *options, "job", "--",
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
        lives = [f"{pid} {support.state(pid)}" for pid in self.writers("first") if not support.killed(pid)]
        if lives:
            words = f"the first one lives: {', '.join(lives)}"
            self.in_time(boot_ns(), deadline, words, self.stalls)
            self.fail(words)
        last = max(ns for _, ns in stamps(self.path("first")))
        began = min(ns for _, ns in stamps(self.path("second")))
        self.assertLess(last, began)
        self.in_time(last, deadline, "the last write was", self.stalls)

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

    def test_holdfast_is_killed_and_nobody_reads_its_errors(self):
        """The guardian has something to say, and must not wait for a reader."""
        out, into = os.pipe()
        self.addCleanup(os.close, out)
        size = fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)
        os.write(into, b"." * size)
        first = self.start("run", "--ttl", "60s", "--grace", "0.4", "job", "--", sys.executable,
                           WRITER, self.path("first"), stderr=into)
        os.close(into)
        until(lambda: len(self.writers("first")) == 2, "the command and its grandchild write")
        first.kill()
        until(self.gone, "the guardian has ended everything", cap=10)

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

    def test_the_guardian_is_stopped_and_holdfast_killed(self):
        """Whoever adopts the guardian is in its session here, so that the kernel does not continue it as it
        does with a stopped process group that is orphaned."""
        set_subreaper(1)
        self.addCleanup(set_subreaper, 0)
        first = self.first()
        self.second()
        deadline = support.deadline_of(self.command_of(first.pid))
        guardian = self.stopped_guardian(first)
        first.kill()
        first.wait()
        self.addCleanup(end_of, guardian)
        self.assert_apart(max(deadline, deadline_now(deadline, first)))
        until(lambda: not alive(guardian), "the guardian has ended")

    def test_the_guardian_is_stopped_before_it_starts_the_command(self):
        """What was waited for, and comes too late: nothing is started."""
        holder = self.hold("job")
        waiter = self.start("run", "--ttl", "2s", "--grace", "0.4", "job", "--", "touch", self.path("ran"))
        until(lambda: "held by" in waiter.stderr.readline(), "it waits")
        guardian = self.stopped_guardian(waiter)
        holder.terminate()
        holder.wait()
        until(lambda: published_deadline(self.folder), "it has the lock")
        until(lambda: support.state(waiter.pid) == "S", "it has told the guardian to start")
        waiter.send_signal(signal.SIGSTOP)
        until(lambda: support.state(waiter.pid) == "T", "it renews no more")
        deadline = published_deadline(self.folder)
        until(lambda: boot_ns() > deadline, "the lease is over")
        os.kill(guardian, signal.SIGCONT)
        # Either way it has nothing to do then: it waits for the command, or for holdfast.
        until(lambda: support.state(guardian) == "S", "it has read its order")
        waiter.send_signal(signal.SIGCONT)
        self.assertEqual(waiter.wait(timeout=10), 76)
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assertIn("The command was not started.", waiter.stderr.read())

    def test_max_hold_is_the_guardians_to_keep(self):
        """With holdfast stopped nobody else does."""
        first = self.first("--max-hold", "2s", "--ttl", "60s")
        first.send_signal(signal.SIGSTOP)
        until(self.gone, "the guardian has ended everything", cap=10)
        first.send_signal(signal.SIGCONT)
        self.assertEqual(first.wait(timeout=10), 76)
        self.assertIn("--max-hold is 2.0 s", first.stderr.read())

    def test_the_grace_ends_at_the_deadline(self):
        """A guardian that comes late to its SIGTERM is not late with its SIGKILL."""
        first = self.first("--ttl", "4s", "--grace", "1.9s")
        first.send_signal(signal.SIGSTOP)
        until(lambda: support.state(first.pid) == "T", "holdfast is stopped")
        guardian = self.stopped_guardian(first)
        deadline = support.deadline_of(self.command_of(first.pid))
        until(lambda: boot_ns() > deadline - 700_000_000, "it is late")
        os.kill(guardian, signal.SIGCONT)
        until(self.gone, "the guardian has ended everything")
        last = max(ns for _, ns in stamps(self.path("first")))
        self.in_time(last, deadline, "the last write was", self.stalls)
        first.send_signal(signal.SIGCONT)
        self.assertEqual(first.wait(timeout=10), 76)

    def test_both_are_killed(self):
        """The kernel kills the command; nobody can find what it had started."""
        first = self.first()
        command = self.command_of(first.pid)
        guardian = guardian_of(first.pid)
        for pid in self.writers("first"):
            if pid != command:
                self.addCleanup(os.kill, pid, signal.SIGKILL)
        first.send_signal(signal.SIGSTOP)  # so that neither sees the other's end
        os.kill(guardian, signal.SIGKILL)
        first.kill()
        until(lambda: not alive(command), "the command is gone")
        shutil.rmtree(deadline_folder(self.folder))

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

    def test_an_exception_ends_the_command_before_the_lock(self):
        """Whatever ends the run early, the release comes last."""
        out, into = os.pipe()
        self.addCleanup(os.close, out)
        # With AddressSanitizer its own library would have to come first.
        env = {"LD_PRELOAD": os.environ["HOLDFAST_THROWING_WRITE"],
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
        first = self.first("--status-fd", str(into), pass_fds=[into], env=env)
        os.close(into)
        self.second()
        self.assertEqual(first.wait(timeout=10), 70)
        self.assertIn("thrown by a test", first.stderr.read())
        self.assert_apart(boot_ns())

    def test_an_exception_when_the_guardian_is_killed(self):
        """What it left is ended before the lock is released."""
        out, into = os.pipe()
        self.addCleanup(os.close, out)
        env = {"LD_PRELOAD": os.environ["HOLDFAST_THROWING_WRITE"], "HOLDFAST_TEST_KILLS_GUARDIAN": "1",
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
        first = self.first("--ttl", "9s", "--grace", "0.4", "--status-fd", str(into), pass_fds=[into], env=env)
        os.close(into)
        for pid in self.writers("first"):
            self.addCleanup(kill_if_there, pid)
        self.second()
        self.assertEqual(first.wait(timeout=10), 70)
        self.assertIn("thrown by a test", first.stderr.read())
        self.assert_apart(boot_ns())

    def stopped_guardian(self, first):
        guardian = guardian_of(first.pid)
        os.kill(guardian, signal.SIGSTOP)
        until(lambda: support.state(guardian) == "T", "the guardian is stopped")
        return guardian

    def test_the_guardian_is_stopped_and_the_lock_broken(self):
        """Only holdfast itself is left to end the command."""
        first = self.first()
        self.second()
        guardian = self.stopped_guardian(first)
        self.assertEqual(self.holdfast("break", "--force", "job").code, 0)
        deadline = support.deadline_of(self.command_of(first.pid))
        self.assert_apart(deadline)
        self.assertEqual(first.wait(timeout=10), 76)
        self.assertFalse(alive(guardian))
        err = first.stderr.read()
        self.assertIn("an operator broke it. The guardian process does not answer: sent SIGTERM "
                      "without it; SIGKILL in", err)

    def test_the_guardian_is_stopped_and_the_server_away(self):
        """What is said to be done is done, and in time."""
        server = support.Redis()
        self.addCleanup(server.close)
        first = self.first(url=server.url)
        command = self.command_of(first.pid)
        guardian = self.stopped_guardian(first)
        server.say("pause")
        deadlines = [boot_ns()]

        def ended():
            try:
                deadlines.append(support.deadline_of(command))
            except (OSError, AssertionError):
                pass
            return first.poll() is not None
        until(ended, "holdfast has ended", cap=10)
        self.assertEqual(first.returncode, 76)
        self.assertFalse(alive(guardian))
        self.assertTrue(self.gone())
        last = max(ns for _, ns in stamps(self.path("first")))
        self.in_time(last, max(deadlines), "the last write was", self.stalls)
        server.say("resume")
        err = first.stderr.read()
        self.assertIn("sent SIGTERM without it", err)
        self.assertNotIn("in 0 ms", err)

    def test_a_stopped_guardian_can_be_ended_by_hand(self):
        """Two interrupts kill the command, whoever is there to do it."""
        first = self.first()
        self.stopped_guardian(first)
        first.send_signal(signal.SIGTERM)
        until(lambda: not support.pending(first.pid, signal.SIGTERM), "the first is taken")
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(timeout=10), 70)
        self.assertTrue(self.gone())
        self.assert_free("job")

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


class GuardianAlone(CliTest):
    """What becomes of the run when its guardian is killed, and of processes that are not its own."""

    def test_killed_during_the_wait(self):
        """Noticed at once; nothing was started, so nothing is abandoned."""
        holder = self.hold("job")
        waiter = self.start("run", "job", "--", "touch", self.path("ran"))
        until(lambda: "held by" in waiter.stderr.readline(), "it waits")
        os.kill(guardian_of(waiter.pid), signal.SIGKILL)
        self.assertEqual(waiter.wait(timeout=5), 70)
        self.assertIn("the guardian process was killed during the wait", waiter.stderr.read())
        self.assertEqual(self.inspect("job")["waiters"], [])
        holder.terminate()
        holder.wait()
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_children_from_before_the_exec_are_not_ours(self):
        """`sleep & exec holdfast ...` leaves holdfast a child that it did not start."""
        script = ('sleep 1000 & echo $!; sh -c "sleep 1000 & echo \\$!; exec sleep 2" & '
                  f'exec "{CLI}" --url "{self.url}" run job -- sh -c "setsid sleep 999 & exec sleep 998"')
        process = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=self.env)
        self.started.append(process)
        others = sorted(int(process.stdout.readline()) for _ in range(2))
        for pid in others:
            self.addCleanup(os.kill, pid, signal.SIGKILL)
        command = self.until_running(process)
        ours = until(lambda: [command, *children(command)] if len(children(command)) == 1 else None,
                     "the command's child")
        until(lambda: parents_of(others) == {process.pid}, "holdfast has adopted the orphan")
        os.kill(guardian_of(process.pid), signal.SIGKILL)
        self.assertEqual(process.wait(timeout=10), 70)
        self.assertEqual([alive(pid) for pid in ours], [False, False])
        self.assertEqual([alive(pid) for pid in others], [True, True])

    def test_the_command_spoils_the_deadline_file(self):
        """It is a copy; what is judged is memory that the command cannot reach."""
        script = (': >"$HOLDFAST_DEADLINE_FILE"; sleep 1.2; '
                  f'"{CLI}" check; chmod 0 "$HOLDFAST_DEADLINE_FILE"; sleep 0.7; exit 9')
        result = self.holdfast("run", "--ttl", "2s", "job", "--", "sh", "-c", script)
        self.assertEqual((result.code, result.err), (9, ""), result)
        self.assertGreater(int(result.out), 0)  # a renewal has written it anew

    def test_a_full_temporary_folder(self):
        """The next folder serves; SIGBUS ended holdfast before it had said anything."""
        script = ('mkdir "$TMPDIR/full" && mount -t tmpfs -o size=4k tmpfs "$TMPDIR/full" && '
                  'dd if=/dev/zero of="$TMPDIR/full/x" bs=4096 count=2 2>/dev/null; '
                  f'TMPDIR="$TMPDIR/full" exec "{CLI}" --url "{self.url}" run job -- sh -c '
                  '\'echo "$HOLDFAST_DEADLINE_FILE"\'')
        done = subprocess.run(["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", script], env=self.env, timeout=20,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("/tmp/holdfast-"), done.stdout)

    def test_no_folder_for_the_deadline(self):
        """A clear error before any lock is asked for."""
        def no_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        result = self.holdfast("run", "job", "--", "touch", self.path("ran"), preexec_fn=no_files)
        self.assertEqual(result.code, 70, result)
        self.assertIn("cannot write a file of 32 bytes for the lock's deadline (" + self.folder +
                      ": File too large, /tmp: File too large)", result.err)
        self.assertIn("name another folder with TMPDIR", result.err)
        self.assertIn("NOT acquired; the command was not started", result.err)


def set_subreaper(on):
    ctypes.CDLL(None).prctl(36, on, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def kill_if_there(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def end_of(child):
    kill_if_there(child)
    os.waitpid(child, 0)


def published_deadline(folder):
    """In ns, of the only run in this folder; 0 before it has a lease."""
    try:
        with open(os.path.join(deadline_folder(folder), "deadline"), "rb") as f:
            return struct.unpack("8sQQQ", f.read())[1]
    except (OSError, StopIteration, struct.error):
        return 0


def without_pidfd_open():
    """For this process and what it starts, as with a kernel or a sandbox that does not know it."""
    class Instruction(ctypes.Structure):
        _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8),
                    ("k", ctypes.c_uint32)]

    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_uint16), ("filter", ctypes.POINTER(Instruction))]
    enosys, allow = 0x00050000 | 38, 0x7fff0000
    code = (Instruction * 4)((0x20, 0, 0, 0), (0x15, 0, 1, 434), (0x06, 0, 0, enosys), (0x06, 0, 0, allow))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    if libc.prctl(22, 2, ctypes.byref(Program(4, code)), 0, 0) != 0:  # PR_SET_SECCOMP
        raise OSError(ctypes.get_errno(), "seccomp")


def deadline_folder(folder):
    """Nobody was left to remove it."""
    return next(os.path.join(folder, f) for f in os.listdir(folder) if f.startswith("holdfast-"))


def parents_of(pids):
    return {support.parent(pid) for pid in pids}


def deadline_now(before, process):
    """A renewal may have come between reading the deadline and the kill: at most one ttl later."""
    del process
    return before + 2_000_000_000


def wakeups(pid):
    """How often the process has slept so far."""
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("voluntary_ctxt"))


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
        self.assertIn("has ended and left processes", result.err)
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

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to make a process of another user")
    def test_a_process_of_another_user_is_named(self):
        """Root without the right to signal others, and a command that is nobody's."""
        def without_cap_kill():
            ctypes.CDLL(None).prctl(24, 5, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_KILL
        program = "import os, time; os.setuid(65534); print(os.getpid(), flush=True); time.sleep(5)"
        holder = self.start("run", "--ttl", "2s", "--max-hold", "1s", "job", "--", sys.executable, "-c", program,
                            preexec_fn=without_cap_kill)
        pid = int(holder.stdout.readline())
        guardian = guardian_of(holder.pid)
        until(lambda: self.inspect("job")["holders"] == [] or None, "the lock is free")
        self.assertTrue(alive(pid))
        before = [wakeups(p) for p in (guardian, holder.pid)]
        time.sleep(1)  # not to wait for anything: how often they look in a second
        for looks in (wakeups(p) - n for p, n in zip((guardian, holder.pid), before)):
            self.assertLess(looks, 30)
        self.assertEqual(holder.wait(timeout=15), 76)
        self.assertFalse(alive(pid))
        err = holder.stderr.read()
        self.assertEqual(err.count(f"process {pid} ("), 1, err)
        self.assertIn("runs as user 65534, and holdfast has no permission to stop it: it continues", err)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to make a process of another user")
    def test_a_process_that_cannot_be_seen_is_waited_for(self):
        """The same, with a /proc that hides the processes of others."""
        def blind():
            libc = ctypes.CDLL(None)
            done = [libc.unshare(0x20000),  # CLONE_NEWNS
                    libc.mount(b"none", b"/", None, 0x44000, None),  # MS_REC | MS_PRIVATE
                    libc.mount(b"proc", b"/proc", b"proc", 0, b"hidepid=2")]
            for right in (5, 19):  # CAP_KILL, CAP_SYS_PTRACE
                done.append(libc.prctl(24, right, 0, 0, 0))  # PR_CAPBSET_DROP
            os.setgroups([])
            os.setgid(65534)
            if any(done):
                raise OSError(f"not prepared: {done}")
        program = "import os, time; os.setuid(65534); print(os.getpid(), flush=True); time.sleep(5)"
        holder = self.start("run", "--ttl", "2s", "--max-hold", "1s", "job", "--", sys.executable, "-c", program,
                            preexec_fn=blind)
        pid = int(holder.stdout.readline())
        self.assertEqual(holder.wait(timeout=15), 76)
        self.assertFalse(alive(pid))
        err = holder.stderr.read()
        self.assertIn("has left processes that this user may not see", err)
        self.assertNotIn("did not answer", err)

    def test_a_stopped_command_can_be_ended(self):
        holder = self.hold("job", "--max-hold", "1.5s", command=("sleep", "1000"))
        command = self.command_of(holder.pid)
        os.kill(command, signal.SIGSTOP)
        self.assertEqual(holder.wait(timeout=10), 76)
        self.assertFalse(alive(command))

    def test_without_pidfd_open(self):
        """A process that cannot be reached in that way has not ended for it."""
        holder = self.start("run", "--max-hold", "2s", "--grace", "0.2", "job", "--", sys.executable, WRITER,
                            self.path("log"), preexec_fn=without_pidfd_open)
        pids = until(lambda: len(writers := {pid for pid, _ in stamps(self.path("log"))}) == 2 and writers,
                     "the command and its grandchild write")
        for pid in pids:
            self.addCleanup(kill_if_there, pid)
        self.assertEqual(holder.wait(timeout=10), 76)
        self.assertEqual([pid for pid in pids if alive(pid)], [])

    def test_processes_that_fork_and_end(self):
        """None of them may be there when /proc is read, so that says nothing of what is left."""
        holder = self.start("run", "--ttl", "60s", "--grace", "1", "job", "--", os.environ["HOLDFAST_CHAIN"],
                            self.path("log"))
        until(lambda: len(stamps(self.path("log"))) > 10, "they run")
        for _ in range(2):  # the second one kills
            until(lambda: not support.pending(holder.pid, signal.SIGTERM), "the one before is taken")
            holder.send_signal(signal.SIGTERM)
        holder.wait(timeout=20)
        self.nobody_writes_after(boot_ns())

    def test_a_process_whose_first_thread_has_ended(self):
        """It looks like a zombie, and works on."""
        program = ("import ctypes, os, signal, sys, threading, time\n"
                   "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                   "def work():\n"
                   "    fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
                   "    while True:\n"
                   "        os.write(fd, b'%d %d\\n' % (os.getpid(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)))\n"
                   "        time.sleep(0.002)\n"
                   "if os.fork() == 0:\n"
                   "    os.setsid()\n"
                   "    threading.Thread(target=work).start()\n"
                   "    ctypes.CDLL(None).syscall(60, 0)\n"  # exit(2), of this thread alone
                   "time.sleep(60)\n")
        holder = self.start("run", "--max-hold", "2s", "--grace", "0.2", "job", "--", sys.executable, "-c", program,
                            self.path("log"))
        pid = until(lambda: stamps(self.path("log")), "it works")[0][0]
        self.addCleanup(kill_if_there, pid)
        until(lambda: not alive(pid), "its first thread has ended")
        self.assertEqual(holder.wait(timeout=10), 76)
        self.nobody_writes_after(boot_ns())

    def nobody_writes_after(self, moment):
        until(lambda: boot_ns() > moment + 300_000_000, "it would have been seen")
        self.assertLess(stamps(self.path("log"))[-1][1], moment)

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
