"""What every peer in Python does between its library and the bench; see README.md for the words."""
import json
import sys
import time


def say(**words):
    print(json.dumps(words), flush=True)


def given():
    """SERVERS NAME, from the command line."""
    servers, name = sys.argv[1:]
    return servers, name


def must(taken):
    if not taken:
        raise RuntimeError("the library says that it did not get the lock")


def block(seconds, acquire, release):
    """Cycles for so long; the microseconds of each."""
    clock, times = time.perf_counter_ns, []
    before = clock()
    end = before + int(1e9 * seconds)
    while before < end:
        acquire()
        release()
        after = clock()
        times.append((after - before) / 1e3)
        before = after
    return times


def serve(version, settings, acquire, release):
    """Does what the bench says until it says no more."""
    say(version=version, settings=settings)
    for line in sys.stdin:
        words = line.split()
        try:
            if words[0] == "block":
                say(us=block(float(words[1]), acquire, release))
            elif words[0] == "hold":
                acquire()
                say(held=True)
            else:
                release()
                say(held=False)
        except Exception as error:  # whatever it is, the bench's report has to say it
            say(failed=f"{type(error).__name__}: {error}")
            return
