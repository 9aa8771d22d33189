"""The servers' own commands in docs/operations.md, as they stand there, against a name that holdfast holds."""
import os
import re
import subprocess
import urllib.parse

import support
from support import CliTest, Lab, until

PAGE = os.path.join(support.HERE, "..", "..", "docs", "operations.md")
JARS = ":".join(f"/usr/share/java/{jar}.jar" for jar in ("zookeeper", "zookeeper-jute", "commons-cli", "slf4j-simple"))


def commands(backend):
    """[(what it is for, the command)] of a backend's block, in the page's order."""
    with open(PAGE) as f:
        block = re.search(rf"<!-- raw: {backend} -->\n```(?:sh|sql)\n(.*?)```", f.read(), re.DOTALL)
    found = []
    for line in block[1].splitlines():
        command, comment = re.split(r"\s+(?:#|--) (?=[a-z])", line, maxsplit=1)
        found.append((comment.split(":")[0], command))
    return found


class Raw(CliTest):
    BACKEND = None

    @classmethod
    def setUpClass(cls):
        if cls.BACKEND is None:
            return
        cls.lab = cls.serve()
        cls.address = urllib.parse.urlsplit(cls.lab.url)

    @classmethod
    def tearDownClass(cls):
        if cls.BACKEND is not None:
            cls.lab.close()

    @classmethod
    def serve(cls):
        return Lab(cls.BACKEND)

    def setUp(self):
        super().setUp()
        self.commands = commands(self.BACKEND)
        self.tried = set()
        self.url = self.lab.url
        self.tools = self.path("tools")
        os.mkdir(self.tools)

    def tool(self, name, script):
        """A program of this name, for the lines of the page, that reaches the lab's server."""
        path = os.path.join(self.tools, name)
        with open(path, "w") as f:
            f.write(f"#!/bin/sh\nPATH={os.environ['PATH']}\nexec {script}\n")
        os.chmod(path, 0o755)

    def said(self, what, env=None, **values):
        """What the page's command for that prints; VALUES stand for the page's words in capitals."""
        command = next(c for name, c in self.commands if name == what)
        self.tried.add(what)
        for word, value in values.items():
            self.assertIn(word, command)
            command = command.replace(word, value)
        done = subprocess.run(["bash", "-c", self.wrapped(command)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, env={**self.env, "PATH": f"{self.tools}:{os.environ['PATH']}", **(env or {})}, check=False)
        self.assertEqual(done.returncode, 0, (command, done.stdout, done.stderr))
        return done.stdout

    def wrapped(self, command):
        return command

    def holder(self, *options):
        """Holds the page's name, and returns the process and how the server knows it."""
        process = self.hold("nightly", "--label", "release 12", "--ttl", "30s", *options)
        return process, self.inspect("nightly")["holders"][0]

    def all_tried(self):
        self.assertEqual(self.tried, {what for what, _ in self.commands})

    def lost(self, process, why):
        self.assertEqual(process.wait(timeout=40), 76)
        self.assertIn(why, process.stderr.read())


class Redis(Raw):
    BACKEND = "redis"

    def setUp(self):
        super().setUp()
        self.tool("redis-cli", f'redis-cli -h {self.address.hostname} -p {self.address.port} "$@"')

    def test_every_line(self):
        process, held = self.holder()
        self.assertEqual(self.said("list"), "{nightly}:hf:s\n")
        self.assertEqual(self.said("holder"), held["owner"] + "\n")
        self.assertRegex(held["owner"], r"^[^.]+\.[^.]+.*\.\d+\.release%2012$")
        self.assertTrue(15_000 < int(self.said("time left")) <= 30_000)
        self.assertEqual(self.said("break --now"), "1\n")
        self.assertFalse(self.inspect("nightly")["held"])
        self.lost(process, "LOST lock")
        process, held = self.holder("--shared")
        self.assertRegex(self.said("holder"), r"^hf:s:\d+\n$")
        self.assertEqual(self.said("holders"), held["owner"] + "\n")
        process.terminate()
        process.wait(timeout=support.CAP)
        process, held = self.holder("--of", "4", "--permits", "2")
        self.assertEqual(self.said("holder"), "hf:p:4\n")
        self.assertEqual(self.said("holders").split(), [held["owner"], held["owner"] + "#2"])
        self.all_tried()


class Redlock(Raw):
    BACKEND = "redlock"

    @classmethod
    def serve(cls):
        return Lab("redis", count=3)

    def setUp(self):
        super().setUp()
        self.nodes = [urllib.parse.urlsplit(url) for url in self.lab.urls]
        hosts = ",".join(f"{node.hostname}:{node.port}" for node in self.nodes)
        self.url = f"redlock://{hosts}?durable=yes"
        self.tool("redis-cli", 'redis-cli -p "$NODE" "$@"')

    def each(self, what):
        return {self.said(what, env={"NODE": str(node.port)}) for node in self.nodes}

    def test_every_line(self):
        process, held = self.holder()
        # A majority suffices for a grant, and the third node learns of it a moment later.
        until(lambda: self.each("holder") == {held["owner"] + "\n"}, "every node has it")
        self.assertEqual(self.each("list"), {"{nightly}:hf:t\n"})
        self.assertTrue(all(15_000 < int(left) <= 30_000 for left in self.each("time left")))
        self.assertEqual(self.each("break --now"), {"1\n"})
        self.assertFalse(self.inspect("nightly")["held"])
        self.lost(process, "LOST lock")
        self.all_tried()


class Sql:
    """For a Raw with what its client prints: HOLDER, TIME_LEFT, and BROKEN for so many rows that were written."""

    def test_every_line(self):
        process, held = self.holder()
        self.assertEqual(self.said("list"), "nightly\n")
        self.assertEqual(self.said("holder"), self.HOLDER.format(**held))
        self.assertRegex(self.said("time left"), self.TIME_LEFT)
        self.assertEqual(self.said("break", TOKEN=str(held["token"])), self.BROKEN.format(1))
        self.assertTrue(self.inspect("nightly")["holders"][0]["revoked"])
        self.lost(process, "an operator broke it")
        until(lambda: not self.inspect("nightly")["held"], "it is free", cap=40)
        process, held = self.holder("--shared")
        self.assertIn(held["owner"], self.said("holder"))
        self.assertEqual(self.said("break", TOKEN=str(held["token"])), self.BROKEN.format(0))
        self.assertFalse(self.inspect("nightly")["holders"][0]["revoked"])
        self.all_tried()


class PostgreSql(Sql, Raw):
    BACKEND = "postgresql"
    HOLDER, TIME_LEFT, BROKEN = "{owner}|{token}|f|\n", r"^00:00:\d\d\.\d+\n$", "UPDATE {}\n"

    def wrapped(self, command):
        self.assertNotIn('"', command)
        return f'psql -X -A -t -c "{command}"'

    def said(self, what, env=None, **values):
        where = {"PGHOST": self.address.hostname, "PGPORT": str(self.address.port), "PGUSER": self.address.username,
                 "PGDATABASE": self.address.path.strip("/")}
        return super().said(what, env=where, **values)


class MySql(Sql, Raw):
    BACKEND = "mysql"
    HOLDER, TIME_LEFT, BROKEN = "{owner}\t{token}\t0\tNULL\n", r"^(1[5-9]|2\d|30)(\.\d+)?\n$", "{}\n"

    def wrapped(self, command):
        self.assertNotIn('"', command)
        client = f"mariadb --no-defaults -N -h {self.address.hostname} -P {self.address.port} -u {self.address.username}"
        counted = " SELECT ROW_COUNT();" if command.startswith("UPDATE") else ""
        return f'{client} {self.address.path.strip("/")} -e "{command}{counted}"'


class ZooKeeper(Raw):
    BACKEND = "zookeeper"

    def setUp(self):
        super().setUp()
        # Debian's zkCli.sh (package zookeeper) starts the same class.
        self.tool("zkCli.sh", f"java -cp {JARS} -Dorg.slf4j.simpleLogger.defaultLogLevel=error org.apache.zookeeper.ZooKeeperMain "
                  f'-server {self.address.hostname}:{self.address.port} "$@"')

    def test_every_line(self):
        process, held = self.holder()
        self.assertRegex(self.said("list"), r"(?m)^\[.*\bnightly\b.*\]$")
        waiter = self.start("run", "nightly", "--", "true")
        until(lambda: self.inspect("nightly")["waiters"], "one waits")
        nodes = re.search(r"\[(\S+, \S+)\]", self.said("nodes"))[1].split(", ")
        first = min(nodes, key=lambda node: int(node[-10:]))
        self.assertIn(held["owner"], self.said("holder", NODE=first))
        self.said("break --now", NODE=first)
        self.assertEqual(waiter.wait(timeout=support.CAP), 0, "the next in line is granted")
        self.lost(process, "LOST lock")
        self.all_tried()


class Etcd(Raw):
    BACKEND = "etcd"

    def said(self, what, env=None, **values):
        return super().said(what, env={"ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": f"{self.address.hostname}:{self.address.port}"}, **values)

    def test_every_line(self):
        process, held = self.holder()
        waiter = self.start("run", "nightly", "--", "true")
        until(lambda: self.inspect("nightly")["waiters"], "one waits")
        self.assertEqual(self.said("list").count("/holdfast/nightly/"), 2)
        told = self.said("holder")
        self.assertIn(f'"Value" : "hf1 {held["owner"]}"', told)
        self.assertEqual(told.count('"Key"'), 1)
        lease, key = re.search(r'"Lease" : (\d+)', told)[1], re.search(r'"Key" : "(.*)"', told)[1]
        left = re.search(r"granted with TTL\(30s\), remaining\((\d+)s\)", self.said("time left", LEASE=lease))
        self.assertTrue(10 < int(left[1]) <= 30, left)
        self.said("break --now", KEY=key)
        self.assertEqual(waiter.wait(timeout=support.CAP), 0, "the next in line is granted")
        self.lost(process, "LOST lock")
        self.all_tried()


def load_tests(loader, _tests, _pattern):
    """Raw itself has no server."""
    return support.unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in (Redis, Redlock, PostgreSql, ZooKeeper, Etcd))


if __name__ == "__main__":
    support.main()
