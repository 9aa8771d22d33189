#!/usr/bin/env python3
"""The first user of the Debian packages, in a root where they are installed: what tests/package/deb runs there.

deb_user.py --work FOLDER build|use

build: compiles the programs of turn/ against what is installed.
use: uses what is installed in every way that is documented, and runs what `build` made before, which may be of an older
package. C++, C, Python and the command take one lock in turn, at a real Redis.
"""
import argparse
import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import time

import check
from check import Failed, expect, run

HERE = pathlib.Path(__file__).resolve().parent
CAP = 60.0


def until(condition, what):
    end = time.monotonic() + CAP
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"not within {CAP} s: {what}")
        time.sleep(0.02)


@contextlib.contextmanager
def redis(folder):
    """The URL of a Redis that keeps nothing."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
                              stdout=subprocess.DEVNULL)
    try:
        until(lambda: subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True,
                                     check=False).stdout == b"PONG\n", "Redis answers")
        yield f"redis://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


class Installed(check.Check):
    """Nothing says where the packages are: every tool has to find them by itself."""

    def __init__(self, work):
        super().__init__(check.arguments_of(["--source", str(HERE.parents[1]), "--work", str(work), "--flags=-O0", "shared"]))
        self.work.mkdir(parents=True, exist_ok=True)
        self.prefix = pathlib.Path("/usr")
        self.programs = self.work / "turn"

    def environment(self):
        return dict(os.environ)

    def libdir(self):
        files = run("dpkg", "-L", "libholdfast-dev").split()
        return next(pathlib.Path(f) for f in files if f.endswith("/pkgconfig")).parent

    def build_programs(self):
        self.build(HERE / "turn", self.programs)

    def turns(self, url):
        """Each takes the lock, one after the other, with a higher token each; and none while another one has it."""
        each = {"C++": [self.programs / "turn-c++", url, "turn"],
                "C": [self.programs / "turn-c", url, "turn"],
                "Python": ["python3", HERE / "turn/turn.py", url, "turn"],
                "the command": ["holdfast", "--url", url, "run", "-n", "turn", "--", "printenv", "HOLDFAST_TOKEN"]}
        tokens = [int(run(*command)) for command in [*each.values(), *reversed(each.values())]]
        expect(f"{', '.join(each)} take one lock in turn, with the tokens {tokens}", tokens == sorted(set(tokens)))
        with subprocess.Popen(["holdfast", "--url", url, "run", "turn", "--", "cat"], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL) as holder:
            until(lambda: "turn" in run("holdfast", "--url", url, "list").split(), "the command holds the lock")
            for name, command in each.items():
                done = subprocess.run([str(word) for word in command], check=False, capture_output=True)
                expect(f"{name} does not get a lock that is held", done.returncode == 75, str(done))
            holder.stdin.close()
        expect("the command releases it", holder.returncode == 0)

    def command(self):
        files = run("dpkg", "-L", "holdfast")
        expect("the command has its manual page", "/man1/holdfast.1.gz" in files, files)
        path = self.work / "locks.db"
        expect("the command takes a lock of SQLite", run("holdfast", "--url", f"sqlite://{path}", "run", "a", "--", "echo", "ran")
               == "ran\n")
        built = run("holdfast", "backends")
        expect("the command has every backend", all(name in built for name in check.BACKENDS), built)

    def completions(self):
        asks = {"bash": ". /usr/share/bash-completion/bash_completion; _completion_loader holdfast; complete -p holdfast",
                "zsh": "autoload -U compinit; compinit -u -D; print $_comps[holdfast]",
                "fish": "complete -C 'holdfast ins'"}
        answers = {"bash": "-F _holdfast holdfast", "zsh": "_holdfast", "fish": "inspect"}
        for shell, script in asks.items():
            said = run(shell, "-c", script)
            expect(f"{shell} finds the completion", answers[shell] in said, said)

    def use(self, *arguments):
        if arguments:  # a program of Check's
            super().use(*arguments)
            return
        self.command()
        self.completions()
        with redis(self.work) as url:
            self.turns(url)
            self.programs = self.work / "turn-again"
            self.build_programs()
            self.turns(url)
        for backend in check.BY_SOURCE:
            self.find_package(backend)
        self.pkg_config("sqlite")
        self.c_programs()
        self.missing_component()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("what", choices=["build", "use"])
    arguments = parser.parse_args()
    try:
        user = Installed(arguments.work.resolve())
        if arguments.what == "build":
            user.build_programs()
        else:
            user.use()
    except Failed as failed:
        sys.exit(f"FAILED: {failed}")


if __name__ == "__main__":
    main()
