"""What an acquire and a release cost in Python, beside C++ and redis-py's Lock, on one Redis server.

cycle.py CYCLE_PROGRAM [--rounds N] [--check]

The three take turns of 300 cycles, so that a busy machine slows all of them, each on a name of its own. Printed are the
medians of the turns, and the median of the ratios of neighbouring turns. --check fails unless Python takes at most 1.6
times what C++ takes, and less than redis-py.
"""
import argparse
import statistics
import subprocess
import sys
import time

import redis

import support
import holdfast

CYCLES = 300
ALLOWED = 1.6


def timed(cycle):
    began = time.perf_counter()
    for _ in range(CYCLES):
        cycle()
    return (time.perf_counter() - began) / CYCLES * 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    server = support.Lab(support.os.environ["HOLDFAST_LAB"], "redis")
    url = server.urls[0]
    program = subprocess.Popen([options.program, url, "cpp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    lock = holdfast.open(url).lock("python")
    peer = redis.Redis.from_url(url).lock("redis-py", timeout=10)

    def ours():
        with lock:
            pass

    def theirs():
        with peer:
            pass

    def cpp():
        program.stdin.write(f"{CYCLES}\n")
        program.stdin.flush()
        return float(program.stdout.readline())

    turns = []
    for n in range(options.rounds + 2):
        turn = (cpp(), timed(ours), timed(theirs))
        if n >= 2:  # connections are made, and code is warm
            turns.append(turn)
    program.stdin.close()
    program.wait()
    server.close()
    for name, column in zip(("C++", "Python", "redis-py"), zip(*turns)):
        print(f"{name:9} {statistics.median(column):7.1f} us")
    of_cpp = statistics.median(t[1] / t[0] for t in turns)
    of_peer = statistics.median(t[1] / t[2] for t in turns)
    print(f"Python takes {of_cpp:.2f} x C++ and {of_peer:.2f} x redis-py's Lock")
    return 1 if options.check and (of_cpp > ALLOWED or of_peer >= 1) else 0


if __name__ == "__main__":
    sys.exit(main())
