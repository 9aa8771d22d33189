"""examples/node: several Node processes at once, one at a time under the lock. node.py NODE EXAMPLE MODULES HOLDFAST_LAB"""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from lab import Lab  # noqa: E402

PROCESSES, ROUNDS = 3, 10


def main():
    node, example, modules, lab = sys.argv[1:]
    for name in os.listdir(example):  # beside the modules, where Node looks for them
        if name.endswith(".mjs"):
            shutil.copy(os.path.join(example, name), modules)
    server = Lab(lab, "redis")
    read, write = os.pipe()
    command = [node, os.path.join(modules, "orders.mjs"), server.urls[0], "orders", str(ROUNDS)]
    started = [subprocess.Popen(command, stdout=write) for _ in range(PROCESSES)]
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        lines = pipe.read().splitlines()
    codes = [process.wait() for process in started]
    server.close()
    work = [line for line in lines if line[0].isdigit()]
    pairs = list(zip(work[::2], work[1::2]))
    tokens = [int(re.search(r"token (\d+)", begin)[1]) for begin, _ in pairs]
    good = (codes == [0] * PROCESSES and len(pairs) == PROCESSES * ROUNDS and tokens == sorted(set(tokens))
            and all(end == begin.split()[0] + " ends in time" for begin, end in pairs)
            and lines.count("TimedOut, code 2") == PROCESSES)
    print("\n".join(lines) if not good else f"{len(pairs)} jobs of {PROCESSES} processes, one at a time")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
