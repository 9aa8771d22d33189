"""Takes all cores away from everybody, for up to a second every few seconds, as a crowded host does to a
virtual machine: tests/run --stalls. Needs the right to run in real time. Ends with who started it,
or when it is told to.
"""
import os
import random
import sys
import time

HOLD, EVERY = 0.7, 3.0  # seconds, on average


def stall(core, seed, parent):
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    chance = random.Random(seed)  # the same for each core: they go together
    while os.getppid() == parent:
        end = time.monotonic() + HOLD * chance.uniform(0.3, 1.5)
        while time.monotonic() < end:
            pass
        time.sleep(EVERY * chance.uniform(0.5, 1.5))


def main():
    seed, me, starter = random.randrange(2**32), os.getpid(), os.getppid()
    print(f"stalls: seed {seed}", flush=True)
    for core in os.sched_getaffinity(0):
        if os.fork() == 0:
            stall(core, seed, me)
            os._exit(0)
    while os.getppid() == starter:
        time.sleep(0.5)


main()
