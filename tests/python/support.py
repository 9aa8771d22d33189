"""What the tests of the Python module share: a server of the lab, and waiting without sleeping."""
import os
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from lab import Lab  # noqa: E402
import holdfast  # noqa: E402

CAP = 20.0
BRIEF = 1.0  # ends without a grant, and is long enough for the server's answer on a machine that stands still
_server = None


def url():
    """Of one server for all tests of a process."""
    global _server
    if _server is None:
        _server = Lab(os.environ["HOLDFAST_LAB"], "redis")
        unittest.addModuleCleanup(stop)
    return _server.urls[0]


def stop():
    global _server
    _server.close()
    _server = None


def until(condition, what):
    """Looks again until the condition holds; fails when the cap has passed."""
    end = time.monotonic() + CAP
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {CAP} s: {what}")
        time.sleep(0.002)


class Case(unittest.TestCase):
    """A test with two clients, and names of its own."""

    def setUp(self):
        self.url = url()
        self.one, self.other = holdfast.open(self.url), holdfast.open(self.url)
        self.addCleanup(self.one.close)
        self.addCleanup(self.other.close)
        self.name = self.id()

    def waiters(self):
        return len(self.other.inspect(self.name)["waiters"])

    def held(self):
        return self.other.inspect(self.name)["held"]

    def program(self, text, *arguments):
        """A Python program of its own, which gets the URL and the test's name."""
        text = "import sys, holdfast\nurl, name = sys.argv[1:3]\n" + text
        quiet = ["-W", "ignore::DeprecationWarning"]  # of fork while there are threads
        return subprocess.Popen([sys.executable, *quiet, "-c", text, self.url, self.name, *arguments], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ends(self, process, code=0):
        """What the program wrote."""
        output, errors = process.communicate(timeout=CAP)
        self.assertEqual(process.returncode, code, errors)
        self.assertEqual(errors, "")
        return output
