#!/usr/bin/env python3
"""Builds examples/ as its reader does, runs each program, and judges what it prints.

examples.py --source TREE --prefix INSTALLED --work FOLDER --cli HOLDFAST --lab HOLDFAST-LAB [--only EXAMPLE] -- CMAKE-OPTION...
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CAP = 60.0


class Failed(Exception):
    pass


def expect(what, condition, text=""):
    if not condition:
        raise Failed(f"{what}\n{text}")
    print(f"  ok: {what}", flush=True)


def until(condition, what):
    end = time.monotonic() + CAP
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"not within {CAP:.0f} s: {what}")
        time.sleep(0.01)


class Program:
    """A program that runs until it is ended; what it prints goes to a file."""

    def __init__(self, folder, env, *command):
        self.file = pathlib.Path(tempfile.mkstemp(dir=folder)[1])
        with open(self.file, "wb") as out:
            self.process = subprocess.Popen([str(c) for c in command], env=env, stdout=out, stderr=out)

    def text(self):
        return self.file.read_text()

    def says(self, what, times=1):
        def said():
            if self.text().count(what) >= times:
                return True
            if self.process.poll() is not None and self.text().count(what) < times:
                raise Failed(f"{self.process.args} ended with {self.process.returncode} before it said {what!r}:\n{self.text()}")
            return False
        until(said, f"{self.process.args} says {what!r}:\n{self.text()}")

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(CAP)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def most_at_once(lines):
    """Of "PID begins TASK" and "PID ends TASK", how many were under way together at most."""
    now = most = 0
    for line in lines:
        now += {"begins": 1, "ends": -1}[line.split()[1]]
        most = max(most, now)
    return most


class Examples:
    def __init__(self, arguments):
        self.source, self.cli, self.lab = arguments.source.resolve(), arguments.cli, arguments.lab
        self.prefix = arguments.prefix.resolve()
        self.build = arguments.work / "build"
        self.work = arguments.work / "run"
        shutil.rmtree(arguments.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        bin_folder = self.work / "bin"
        bin_folder.mkdir()
        (bin_folder / "holdfast").symlink_to(self.cli)
        self.env = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "XDG_STATE_HOME": str(self.work / "state"),
                    "XDG_CONFIG_HOME": str(self.work)}
        for name in ("HOLDFAST_URL", "HOLDFAST_CONFIG"):
            self.env.pop(name, None)
        self.running = []

    def compile(self, prefix, options):
        if not prefix.is_dir():
            raise Failed(f"{prefix} is not there: package.static installs Holdfast into it")
        for command in (["cmake", "-S", self.source / "examples", "-B", self.build, f"-DCMAKE_PREFIX_PATH={prefix}", *options],
                        ["cmake", "--build", self.build]):
            done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            if done.returncode != 0:
                raise Failed(done.stdout)

    def program(self, example, name=None):
        return self.build / example / (name or example.replace("-", "_"))

    def run(self, *command, code=0, env=None):
        done = subprocess.run([str(c) for c in command], env=env or self.env, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=CAP, check=False)
        if done.returncode != code:
            raise Failed(f"{command}\nended with {done.returncode}, not {code}:\n{done.stdout}")
        return done.stdout

    def start(self, *command, env=None):
        self.running.append(Program(self.work, env or self.env, *command))
        return self.running[-1]

    def sqlite(self, name, more=""):
        return f"sqlite://{self.work}/{name}.db{more}"

    def order(self, _):
        url = self.sqlite("order")
        output = self.run(self.program("order"), url)
        expect("order writes under a token", re.fullmatch(r"amount 3 under token [1-9]\d*\n", output), output)
        output = self.run(self.program("order", "order_async"), url)
        expect("order_async acquires, and releases what it holds", "under token" in output and "release: released" in output, output)

    def counter(self, redis):
        number = self.work / "number"
        both = [self.start(self.program("counter"), redis, number, 10) for _ in range(2)]
        for one in both:
            expect("counter ends well", one.process.wait(CAP) == 0, one.text())
        expect("counter: two processes of four threads lose no update", number.read_text() == "80", number.read_text())

    def cron_job(self, redis):
        script = self.source / "examples/cron-job/nightly.sh"
        for url in (None, redis):
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.work))
            env = {**self.env, "REPORT_DIR": str(folder), "MIN_HOLD": "10m"} | ({"HOLDFAST_URL": url} if url else {})
            first = self.start(script, env=env)
            first.says("report written")
            report = (folder / "report").read_text()
            expect("cron-job writes its report under a token", re.search(r"token [1-9]", report), report)
            output = self.run(script, env=env)
            expect("cron-job: a second machine leaves it to the first one, without mail", output == "", output)
            expect("cron-job ends with its work", first.end() == 0, first.text())
            again = self.start(script, env=env)
            again.says("report written")
            expect("cron-job: the next night writes a new one",
                   (folder / "report").read_text() != report and again.end() == 0, again.text())

    def leader(self, redis):
        url = redis
        watcher = self.start(self.program("leader"), url)
        a = self.start(self.program("leader"), url, "a")
        a.says("a leads, token")
        watcher.says("a leads")
        b = self.start(self.program("leader"), url, "b")
        until(lambda: self.waiters(url, "scheduler") == 1, "b waits")
        expect("leader: one leads, and the other one does not", "leads" not in b.text(), b.text())
        expect("leader resigns", a.end() == 0 and "a resigns" in a.text(), a.text())
        b.says("b leads, token")
        watcher.says("b leads")
        c = self.start(self.program("leader"), url, "c")
        until(lambda: self.waiters(url, "scheduler") == 1, "c waits")
        b.end(signal.SIGKILL)
        c.says("c leads, token")
        self.run(self.cli, "--url", url, "break", "--force", "scheduler")
        c.says("c leads no more: ")
        c.says("c leads, token", times=2)
        expect("leader: the next one leads after a crash, and after a loss",
               c.end() == 0 and watcher.end() == 0, c.text() + watcher.text())

    def waiters(self, url, name):
        return len(json.loads(self.run(self.cli, "--url", url, "--json", "inspect", name))["waiters"])

    def worker_pool(self, redis):
        log = self.work / "tasks"
        with open(log, "ab") as out:
            both = [subprocess.Popen([self.program("worker-pool"), redis, "20"], env=self.env, stdout=out) for _ in range(2)]
        for one in both:
            expect("worker-pool ends well", one.wait(CAP) == 0, log.read_text())
        lines = log.read_text().splitlines()
        ended = sum(" ends " in line for line in lines)
        most = most_at_once(lines)
        expect(f"worker-pool: 40 tasks, {most} at a time at most", ended == 40 and 1 < most <= 3, log.read_text())

    def migration(self, redis):
        number, old = self.work / "migrated", self.sqlite("old")
        steps = [[(old,), (old,)], [(old,), (old, redis)], [(redis, old), (old, redis)], [(old, redis), (redis,)], [(redis,), (redis,)]]
        for step in steps:
            both = [self.start(self.program("migration"), number, 20, *urls) for urls in step]
            for one in both:
                expect("migration ends well", one.process.wait(CAP) == 0 and "raised 20 times" in one.text(), one.text())
        expect("migration: no update was lost in any step", number.read_text() == "200", number.read_text())

    def fenced(self, example, document, *arguments):
        output = self.run(self.program(example), *arguments)
        tokens = [int(t) for t in re.findall(r"token (\d+)", output)]
        answers = re.findall(r": (\w+)", output)
        expect(f"{example} refuses the late write, and no other", answers == ["accepted", "accepted", "refused", "accepted"]
               and tokens[0] == tokens[2] < tokens[1] == tokens[3], output)
        said = (self.source / "docs/guarantees.md").read_text()
        code = re.search(rf"^```{document}\n(.*?)^```", said, re.M | re.S)[1]
        source = self.program(example).name + ".cpp"
        return code, (self.source / "examples" / example / source).read_text()

    def fenced_store_sql(self, _):
        code, text = self.fenced("fenced-store-sql", "sql", self.sqlite("locks"), self.work / "store.db")
        comparison = re.search(r"WHERE id = 42 AND fence <= ", code)[0]
        expect("fenced-store-sql: its comparison is that of docs/guarantees.md", comparison in text, code)

    def fenced_store_redis(self, redis):
        port = redis.rsplit(":", 1)[1]
        code, text = self.fenced("fenced-store-redis", "lua", self.sqlite("locks"), "127.0.0.1", port)
        expect("fenced-store-redis: its script is that of docs/guarantees.md", code in text, code)

    def coroutine_service(self, redis):
        url, name = redis, "coroutine-service"
        first = self.start(self.program(name), url)
        first.says("serving, token")
        waiting = self.start(self.program(name), url)
        until(lambda: self.waiters(url, name) == 1, "a second service waits")
        expect("coroutine-service: a waiting one ends at a signal", waiting.end() == 0 and waiting.text() == "stopped\n", waiting.text())
        expect("coroutine-service: and leaves no waiter", self.waiters(url, name) == 0)
        self.run(self.cli, "--url", url, "break", "--force", name)
        first.says("lost: ")
        first.says("serving, token", times=2)
        expect("coroutine-service: a loss ends the work and a signal the service",
               first.end() == 0 and "release: released\nstopped\n" in first.text(), first.text())
        output = self.run(self.cli, "--url", url, "run", "-n", name, "--", "sh", "-c", "echo $HOLDFAST_PREVIOUS")
        expect("coroutine-service: the next holder learns that its work was done", output == "released\n", output)

    def jobs(self, what, *commands):
        words = [word for command in commands for word in ("--", *command)]
        library = next(self.prefix.glob("lib*/**/libholdfast-c.so.1"))
        output = self.run(sys.executable, self.source / "tests/package/jobs_example.py", self.lab, *words,
                          env={**self.env, "HOLDFAST_C_LIBRARY": str(library), "PYTHONPATH": str(self.source / "core/python")})
        expect(f"{what}: processes work one at a time", f"{10 * len(commands)} jobs of {len(commands)} processes" in output, output)

    def in_c(self):
        return [self.program("c", "orders")]

    def in_python(self):
        return [sys.executable, self.source / "examples/python/orders.py"]

    def c(self, _):
        self.jobs("c", *[self.in_c()] * 3)

    def python(self, _):
        self.jobs("python", *[self.in_python()] * 3)

    def node(self, _):
        modules = self.work / "node"
        self.run("cmake", f"-DSOURCE={self.source / 'examples/node'}", f"-DTARGET={modules}", "-P",
                 self.source / "cmake/install_node_modules.cmake")
        for file in (self.source / "examples/node").glob("*.mjs"):  # beside the modules, where Node looks for them
            shutil.copy(file, modules)
        node = ["node", modules / "orders.mjs"]
        self.jobs("node", node, node, self.in_c(), self.in_python())

    def all(self, only):
        folders = sorted(p.parent.name for p in self.source.glob("examples/*/README.md"))
        lab = subprocess.Popen([str(self.lab), "redis"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            redis = lab.stdout.readline().strip()
            expect("the lab has a Redis", redis.startswith("redis://"), redis)
            for folder in folders:
                method = getattr(self, folder.replace("-", "_"), None)
                if method is None:
                    raise Failed(f"examples/{folder} is not run: tests/package/examples.py has no function for it")
                if only in (None, folder):
                    method(redis)
        finally:
            for one in self.running:
                one.kill()
            lab.stdin.close()
            lab.wait()


def main():
    parser = argparse.ArgumentParser()
    for name in ("--source", "--prefix", "--work", "--cli", "--lab"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    parser.add_argument("--only")
    parser.add_argument("options", nargs="*")
    arguments = parser.parse_args()
    arguments.work = arguments.work.resolve()
    try:
        examples = Examples(arguments)
        examples.compile(arguments.prefix, arguments.options)
        examples.all(arguments.only)
    except Failed as failed:
        sys.exit(f"FAILED: {failed}")


if __name__ == "__main__":
    main()
