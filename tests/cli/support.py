"""What the tests of the command share: the real binary, real servers, and waiting without sleeping."""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time
import unittest

CLI = os.environ["HOLDFAST_CLI"]
LAB = os.environ["HOLDFAST_LAB"]
HERE = os.path.dirname(os.path.abspath(__file__))
WRITER = os.path.join(HERE, "writer.py")
CAP = 20.0
# Where the tests' SQLite files are: in memory. A renewal of SQLite is a synced commit, and the time of
# a disk that others keep busy is not what the command's tests judge.
LOCKS = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def until(condition, what, cap=CAP):
    """Polls; returns what the condition returned, fails when the cap has passed."""
    end = time.monotonic() + cap
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {cap} s: {what}")
        time.sleep(0.005)


class VoidTrial(Exception):
    """Something was late while the machine itself stood still: that proves nothing."""


class Stalls:
    """How long this machine lets a thread wait that is due: what nothing on it can be in time for. Until
    close()."""

    def __init__(self):
        self._longest = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        due = boot_ns() + 5_000_000
        while not self._stop.wait(0.005):
            self._longest = max(self._longest, boot_ns() - due)
            due = boot_ns() + 5_000_000

    def longest(self):
        """In ns, so far."""
        return self._longest

    def close(self):
        self._stop.set()
        self._thread.join()


def alive(pid):
    """True while the process runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def killed(pid):
    """True when it does not run any more, or will not: a busy machine may take long to bury what was killed."""
    try:
        with open(f"/proc/{pid}/status") as f:
            pending = re.findall(r"^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)$", f.read(), re.M)
    except (FileNotFoundError, ProcessLookupError):
        return True
    return not alive(pid) or any(int(mask, 16) >> (signal.SIGKILL - 1) & 1 for mask in pending)


def state(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def parent(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])


def pending(pid, number):
    with open(f"/proc/{pid}/status") as f:
        mask = next(int(line.split()[1], 16) for line in f if line.startswith("ShdPnd"))
    return mask >> (number - 1) & 1


def children(pid):
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid and fields[0] not in "ZX":
            found.append(int(entry))
    return found


def guardian_of(pid):
    """The guardian is the child that is named so."""
    for child in children(pid):
        try:
            with open(f"/proc/{child}/comm") as f:
                if f.read().strip() == "holdfast-guard":
                    return child
        except FileNotFoundError:
            pass
    return None


class Lab:
    """Servers of one kind; they end with their standard input."""

    def __init__(self, kind, *options, count=1):
        more = [] if count == 1 else ["--count", str(count)]
        self.process = subprocess.Popen([LAB, kind, *more, *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.urls = [self.process.stdout.readline().strip() for _ in range(count)]
        self.url = self.urls[0]
        if not self.urls[-1]:
            raise AssertionError("the lab did not start: " + self.process.stderr.read())

    def say(self, line):
        """A command for the lab; returns when it has answered."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=CAP)
        self.process.stdout.close()
        self.process.stderr.close()


class Redis(Lab):
    def __init__(self, *options):
        super().__init__("redis", *options)


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"exit {self.code}\n--- out\n{self.out}--- err\n{self.err}"


def clean_environment(home, extra=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "XDG_"))}
    env.update(HOME=home, LC_ALL="C.UTF-8", TMPDIR=home)
    env.pop("NO_COLOR", None)
    env.update(extra or {})
    return env


class CliTest(unittest.TestCase):
    """A folder of its own for each test, and nothing left behind in it. A test that asserts in_time() is a
    trial, as in tests/support/trial.hpp: one that is void is said and made again, at most three times."""
    maxDiff = None
    MAY_BE_VOID = 3

    def __init__(self, method="runTest"):
        super().__init__(method)
        test = getattr(self, method)

        def trials():
            for self.trial in range(1, self.MAY_BE_VOID + 2):
                try:
                    return test()
                except VoidTrial as void:
                    print(f"void trial {self.trial}: {void}", flush=True)
                self.tearDown()
                self.doCleanups()
                self.setUp()
        setattr(self, method, trials)

    def in_time(self, ns, deadline, what, stalls):
        """Asserts that `ns` is before the deadline; void where a stall explains the difference."""
        late, stall = ns - deadline, stalls.longest()
        words = f"{what} {late / 1e6} ms too late; a thread that was due waited for {stall / 1e6} ms"
        # A word passes through two processes, one after the other.
        if 0 <= late < 2 * stall and self.trial <= self.MAY_BE_VOID:
            raise VoidTrial(words)
        self.assertLess(ns, deadline, words)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="holdfast-cli-")
        self.env = clean_environment(self.folder)
        self.locks = tempfile.mkdtemp(prefix="holdfast-cli-", dir=LOCKS)
        self.url = "sqlite://" + os.path.join(self.locks, "locks.db")
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        self.no_private_folders()
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.locks, ignore_errors=True)

    def no_private_folders(self):
        """Deadline files go with their run; a guardian may need a moment for it."""
        pattern = re.compile(r"holdfast-[A-Za-z0-9]{6}$")
        until(lambda: not [f for f in os.listdir(self.folder) if pattern.match(f)],
              "the folder of the deadline file is removed")

    def path(self, name):
        return os.path.join(self.folder, name)

    def holdfast(self, *args, url="", env=None, stdin=subprocess.DEVNULL, timeout=CAP, cli=CLI,
                 **more):
        """Runs to the end. `url` empty: this test's own backend; None: none is named."""
        where = [] if url is None else ["--url", url or self.url]
        done = subprocess.run([cli, *where, *args], env={**self.env, **(env or {})},
                              stdin=stdin, capture_output=True, text=True, timeout=timeout, **more)
        return Result(done.returncode, done.stdout, done.stderr)

    def start(self, *args, url="", env=None, **more):
        where = [] if url is None else ["--url", url or self.url]
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([CLI, *where, *args], env={**self.env, **(env or {})},
                                   text=True, **more)
        self.started.append(process)
        return process

    def hold(self, name, *options, command=("sleep", "1000"), **more):
        """Starts `run` and returns when its command runs."""
        process = self.start("run", *options, name, "--", *command, **more)
        self.until_running(process)
        return process

    def until_running(self, process):
        """Returns the command's process; fails at once when holdfast ends."""
        def look():
            if process.poll() is not None:
                raise AssertionError(f"exit {process.returncode}: {process.stderr.read()}")
            return self.command_of(process.pid)
        return until(look, "the command runs")

    def command_of(self, pid):
        """The process of the command under this `run`, once it has been executed."""
        guardian = guardian_of(pid)
        for child in children(guardian) if guardian else []:
            try:
                if os.readlink(f"/proc/{child}/exe") != os.path.realpath(CLI):
                    return child
            except OSError:
                pass
        return None

    def inspect(self, name, url=""):
        result = self.holdfast("--json", "inspect", name, url=url)
        self.assertEqual(result.code, 0, result)
        return json.loads(result.out)

    def assert_free(self, name, url=""):
        seen = self.inspect(name, url=url)
        self.assertEqual(seen["holders"], [], seen)
        self.assertEqual(seen["waiters"], [], seen)


def deadline_of(pid):
    """The deadline in ns of the command with this process, from its own environment."""
    with open(f"/proc/{pid}/environ", "rb") as f:
        for entry in f.read().split(b"\0"):
            if entry.startswith(b"HOLDFAST_DEADLINE_FILE="):
                with open(entry.split(b"=", 1)[1], "rb") as cell:
                    magic, deadline, _token, _over = struct.unpack("8sQQQ", cell.read())
                assert magic == b"hfdline1"
                return deadline
    raise AssertionError("no HOLDFAST_DEADLINE_FILE")


def stamps(path):
    """(pid, ns) of every line that writer.py wrote."""
    try:
        with open(path) as f:
            lines = [line.split() for line in f if line.endswith("\n")]
    except FileNotFoundError:
        return []
    return [(int(pid), int(ns)) for pid, ns in lines]


class OnOneRedis:
    """For a CliTest: one server for all tests of the class, each with its own keys."""
    @classmethod
    def setUpClass(cls):
        cls.server = Redis()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def setUp(self):
        super().setUp()
        self.url = f"{self.server.url}?namespace={self.folder.rsplit('-', 1)[1]}:"


def main():
    unittest.main(verbosity=2)
