"""Takes all cores away from everybody, for up to a second every few seconds, as a crowded host does to a
virtual machine: tests/run --stalls. Ends with its parent, or when it is told to.

usage: stalls.py [HOLD_MS] [EVERY_MS]   means; the defaults are 700 and 3000
"""
import os
import random
import sys
import time


def stall(core, hold, every, seed, parent):
    try:
        os.sched_setaffinity(0, {core})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    except PermissionError:
        sys.exit("stalls.py may not run in real time: be root, or have CAP_SYS_NICE")
    chance = random.Random(seed)  # the same for each core: they go together
    while os.getppid() == parent:
        end = time.monotonic() + hold * chance.uniform(0.3, 1.5)
        while time.monotonic() < end:
            pass
        time.sleep(every * chance.uniform(0.5, 1.5))


def main():
    hold, every = [float(word) / 1e3 for word in (sys.argv[1:] + ["700", "3000"][len(sys.argv) - 1:])]
    seed, parent = random.randrange(2**32), os.getpid()
    print(f"stalls: seed {seed}", flush=True)
    for core in os.sched_getaffinity(0):
        if os.fork() == 0:
            stall(core, hold, every, seed, parent)
            os._exit(0)
    return max(os.waitstatus_to_exitcode(os.wait()[1]) for _ in os.sched_getaffinity(0))


sys.exit(main())
