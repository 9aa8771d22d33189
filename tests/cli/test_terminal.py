"""What a shell user expects: a real interactive bash on a pseudo-terminal."""
import os
import pty
import re
import select
import signal
import termios
import time

import support
from support import CLI, CliTest, alive, state, until


class Shell:
    """bash -i with the terminal as its own."""

    def __init__(self, env, cwd):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            env = {**env, "PS1": "<prompt>", "TERM": "xterm", "INPUTRC": "/dev/null"}
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], env)
        attributes = termios.tcgetattr(self.fd)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(self.fd, termios.TCSANOW, attributes)
        self.seen = ""
        self.expect("<prompt>")

    def type(self, text):
        os.write(self.fd, text.encode())

    def expect(self, pattern, cap=support.CAP):
        end = time.monotonic() + cap
        while True:
            found = re.search(pattern, self.seen)
            if found:
                self.seen = self.seen[found.end():]
                return found
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f"not seen: {pattern}\n{self.seen!r}")
            try:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"the shell ended; not seen: {pattern}\n{self.seen!r}")

    def found(self, pattern):
        try:
            return self.expect(pattern, cap=0.2)
        except AssertionError:
            return None

    def code(self):
        self.type("echo code=$?.\n")
        return int(self.expect(r"code=(\d+)\.").group(1))

    def close(self):
        os.close(self.fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def holdfast_of(command):
    """The command's parent is the guardian, whose parent is holdfast."""
    return support.parent(support.parent(command))


class Terminal(CliTest):
    def setUp(self):
        super().setUp()
        env = {**self.env, "HOLDFAST_URL": self.url, "PATH": os.environ["PATH"]}
        self.shell = Shell(env, self.folder)
        self.addCleanup(self.shell.close)
        self.shell.type(f'holdfast() {{ "{CLI}" "$@"; }}\n')
        self.shell.expect("<prompt>")
        self.shell.type(f'alias hf="{CLI}"\n')
        self.shell.expect("<prompt>")

    def pid_file(self, name="pid"):
        def read():
            try:
                with open(self.path(name)) as f:
                    return int(f.read() or 0)
            except (FileNotFoundError, ValueError):
                return 0
        return until(read, "the command has started")

    def sleeper(self, options=""):
        self.shell.type(f"hf run {options} job -- sh -c 'echo $$ >pid; exec sleep 1000'\n")
        pid = self.pid_file()
        until(lambda: state(pid) == "S", "it sleeps")
        return pid

    def test_the_command_reads_the_terminal(self):
        self.shell.type("hf run job -- cat\n")
        self.shell.type("hello\n")
        self.shell.expect("hello\r\n")
        self.shell.type("\x04")
        self.shell.expect("<prompt>")
        self.assertEqual(self.shell.code(), 0)

    def test_interrupt_reaches_the_command(self):
        pid = self.sleeper()
        self.shell.type("\x03")
        self.shell.expect("<prompt>")
        self.assertEqual(self.shell.code(), 130)
        self.assertFalse(alive(pid))
        self.assert_free("job")

    loop = ("for i in 1 2 3; do {run} run job -- sh -c 'echo $$ >pid; exec sleep 1000'; "
            "echo again.; done; echo after.")

    def ends_with_one_interrupt(self, line, code=130):
        self.shell.type(line + "\n")
        pid = self.pid_file()
        until(lambda: state(pid) == "S", "it sleeps")
        self.shell.type("\x03")
        rest = self.shell.expect("([^<]*)<prompt>").group(1)
        self.assertNotIn("again", rest)
        self.assertNotIn("after", rest)
        self.assertEqual(self.shell.code(), code)
        self.assertFalse(alive(pid))
        self.assert_free("job")
        os.unlink(self.path("pid"))

    def test_one_interrupt_ends_a_loop(self):
        """As with a plain command, in an interactive shell and in scripts."""
        self.ends_with_one_interrupt(self.loop.format(run="hf"))
        for shell in ("bash", "dash"):
            with open(self.path("script"), "w") as f:
                f.write(self.loop.format(run=f'"{CLI}"') + "\n")
            self.ends_with_one_interrupt(f"{shell} script")

    def test_one_interrupt_ends_a_loop_that_waits(self):
        self.hold("job")
        with open(self.path("script"), "w") as f:
            f.write(self.loop.format(run=f'"{CLI}"') + "\n")
        self.shell.type("bash script\n")
        self.shell.expect("waiting for")
        self.shell.type("\x03")
        rest = self.shell.expect("([^<]*)<prompt>").group(1)
        self.assertNotIn("again", rest)
        self.assertEqual(self.shell.code(), 130)

    def test_interrupts_are_the_commands_to_handle(self):
        """At a terminal they reach the command alone, however many."""
        # A shell may not see a signal that comes while it handles another one.
        script = ("import signal as s; s.pthread_sigmask(s.SIG_BLOCK, {s.SIGINT}); print('ready.', flush=True); "
                  "[print(f'caught {n}.', flush=True) for n in (1, 2) if s.sigwait({s.SIGINT})]; raise SystemExit(5)")
        self.shell.type(f'hf run job -- python3 -c "{script}"\n')
        self.shell.expect("ready")
        for n in (1, 2):
            self.shell.type("\x03")
            self.shell.expect(f"caught {n}")
        self.shell.expect("<prompt>")
        self.assertEqual(self.shell.code(), 5)

    def test_stop_and_continue(self):
        pid = self.sleeper("--ttl 30s")
        self.shell.type("\x1a")
        self.shell.expect("Stopped")
        self.shell.expect("<prompt>")
        self.assertEqual(state(pid), "T")
        self.shell.type("fg\n")
        until(lambda: state(pid) == "S", "it goes on")
        self.shell.type("\x03")
        self.shell.expect("<prompt>")
        self.assertEqual(self.shell.code(), 130)

    def test_a_stopped_job_loses_the_lock_in_time(self):
        pid = self.sleeper("--ttl 2s")
        self.shell.type("\x1a")
        self.shell.expect("Stopped")
        until(lambda: not alive(pid), "the guardian has killed the command")
        self.shell.expect("<prompt>")
        self.shell.type("fg\n")
        self.shell.expect("LOST lock")
        rest = self.shell.expect("([^<]*)<prompt>").group(1)
        self.assertEqual(self.shell.code(), 76, rest)

    def test_in_the_background(self):
        self.shell.type("hf run --ttl 30s job -- sh -c 'echo $$ >pid; read line; echo got $line' &\n")
        pid = self.pid_file()
        until(lambda: state(pid) == "T", "it wants the terminal and is stopped")
        self.shell.expect("<prompt>")
        until(lambda: state(holdfast_of(pid)) == "T", "holdfast stops with it")
        # The shell says so at a prompt after it has noticed, which is some time after we have.
        until(lambda: self.shell.type("jobs\n") or self.shell.found("Stopped"), "the shell knows")
        self.shell.type("fg\n")
        until(lambda: state(pid) == "S", "it reads")
        self.shell.type("words\n")
        self.shell.expect("got words")
        self.shell.expect("<prompt>")  # all of it has ended before the terminal does

    def test_in_a_pipeline(self):
        self.shell.type("hf run job -- sh -c 'echo in; sleep 0.1; echo out' | tr a-z A-Z; echo done.\n")
        self.shell.expect("IN\r\nOUT\r\n")
        self.shell.expect(r"done\.\r\n")
        # The reader of the terminal is the other end here, and must not be pushed aside.
        self.shell.type("hf run job -- sleep 0.3 | cat - /dev/tty; echo done.\n")
        self.shell.type("typed\n")
        self.shell.expect("typed\r\n")
        self.shell.type("\x04")
        self.shell.expect(r"done\.\r\n")

    def test_a_reader_in_a_pipeline_gets_the_terminal(self):
        self.shell.type("hf run job -- sh -c 'read line; echo got $line' | cat\n")
        self.shell.type("words\n")
        self.shell.expect("got words")
        self.shell.expect("<prompt>")  # all of it has ended before the terminal does

    def test_interrupt_while_waiting(self):
        self.hold("job", "--label", "other")
        self.shell.type("hf run job -- true\n")
        self.shell.expect('waiting for "job": held by [^\r]*"other"')
        self.shell.type("\x03")
        self.shell.expect("<prompt>")
        self.assertEqual(self.shell.code(), 130)
        self.assertEqual(self.inspect("job")["waiters"], [])

    def test_the_waiting_line_is_updated_in_place(self):
        holder = self.hold("job")
        self.shell.type("hf run job -- echo mine\n")
        self.shell.expect("\r\x1b\\[Kholdfast: waiting for")
        self.shell.expect("\r\x1b\\[Kholdfast: waiting for")
        holder.terminate()
        self.shell.expect("\r\x1b\\[K")
        self.shell.expect("mine\r\n")

    def test_stop_while_waiting(self):
        self.hold("job")
        self.shell.type("hf run job -- true\n")
        self.shell.expect("waiting for")
        self.shell.type("\x1a")
        self.shell.expect("Stopped")
        self.shell.expect("<prompt>")
        self.shell.type("fg\n")
        self.shell.expect("waiting for")
        self.shell.type("\x03")
        self.shell.expect("<prompt>")
        self.assertEqual(self.shell.code(), 130)

    def test_break_asks(self):
        holder = self.hold("job", "--ttl", "2s")
        self.shell.type("hf break job\n")
        self.shell.expect(r"Break it\? \[y/N\] ")
        self.shell.type("n\n")
        self.shell.expect("nothing was broken")
        self.shell.expect("<prompt>")
        self.assertEqual(self.shell.code(), 1)
        self.assertIsNone(holder.poll())
        self.shell.type("hf break --now job\n")
        self.shell.expect("two holders are possible")
        self.shell.expect(r"Break it\? \[y/N\] ")
        self.shell.type("y\n")
        self.shell.expect("was broken")
        self.assertEqual(holder.wait(timeout=10), 76)

    def test_break_breaks_what_it_showed(self):
        shown = self.hold("job", "--of", "2", "--ttl", "2s")
        self.shell.type("hf break job\n")
        self.shell.expect(r"Break it\? \[y/N\] ")
        later = self.hold("job", "--of", "2", "--ttl", "2s")
        self.shell.type("y\n")
        self.shell.expect("was broken")
        self.assertEqual(shown.wait(timeout=10), 76)
        self.shell.expect("<prompt>")
        revoked = {holder["pid"]: holder["revoked"] for holder in self.inspect("job")["holders"]}
        self.assertIs(revoked[later.pid], False, revoked)
        self.assertIsNone(later.poll())


if __name__ == "__main__":
    support.main()
