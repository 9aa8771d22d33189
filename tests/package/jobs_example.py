"""Examples that do a job some times, several processes at once: one at a time under the lock, whatever language each is in.

jobs_example.py HOLDFAST_LAB -- COMMAND... [-- COMMAND...]   each is started with a URL, a name and a number of rounds
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from lab import Lab  # noqa: E402

ROUNDS = 10


def commands(words):
    while words:
        end = words.index("--") if "--" in words else len(words)
        yield words[:end]
        words = words[end + 1:]


def main():
    lab, _, *words = sys.argv[1:]
    server = Lab(lab, "redis")
    read, write = os.pipe()
    started = [subprocess.Popen([*command, server.urls[0], "orders", str(ROUNDS)], stdout=write) for command in commands(words)]
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        lines = pipe.read().splitlines()
    codes = [process.wait() for process in started]
    server.close()
    work = [line for line in lines if line[0].isdigit()]
    pairs = list(zip(work[::2], work[1::2]))
    tokens = [int(re.search(r"token (\d+)", begin)[1]) for begin, _ in pairs]
    good = (codes == [0] * len(started) and len(pairs) == len(started) * ROUNDS and tokens == sorted(set(tokens))
            and all(end == begin.split()[0] + " ends in time" for begin, end in pairs)
            and lines.count("TimedOut, code 2") == len(started))
    print("\n".join(lines) if not good else f"{len(pairs)} jobs of {len(started)} processes, one at a time")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
