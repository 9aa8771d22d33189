"""Servers of the project's own lab for tests in Python."""
import subprocess
import sys


class Lab:
    """Servers of one kind, until close()."""

    def __init__(self, program, kind, count=1):
        # A pipe at its standard input: the lab ends with this process, whatever becomes of it.
        self.process = subprocess.Popen([program, kind, "--count", str(count)], stdout=subprocess.PIPE,
                                        stdin=subprocess.PIPE, text=True)
        self.urls = []
        while len(self.urls) < count:
            line = self.process.stdout.readline()
            if not line:
                sys.exit(f"the lab did not start {kind}")
            if "://" in line and " " not in line.strip():
                self.urls.append(line.strip())

    @property
    def ports(self):
        return [int(url.split("?")[0].rsplit(":", 1)[1].split("/")[0]) for url in self.urls]

    def close(self):
        self.process.terminate()
        self.process.communicate()
