"""orders.py URL NAME COUNT: does a job COUNT times, each time under the lock."""
import os
import sys
import time

import holdfast


def work(lease):
    """Stands for the work; lease.token goes to the store that it writes to."""
    if lease.previous in ("crashed", "abandoned"):
        print("the holder before did not finish: check its work first", file=sys.stderr)
    print(f"{os.getpid()} begins with token {lease.token}", flush=True)
    time.sleep(0.005)
    print(f"{os.getpid()} ends {'in time' if lease.valid else 'too late'}", flush=True)


def main():
    url, name, count = sys.argv[1:]
    try:
        client = holdfast.open(url)
    except holdfast.BadConfig as mistake:
        print(mistake, file=sys.stderr)
        return 78
    with client:
        lock = client.lock(name, wait=30)
        try:
            for _ in range(int(count)):
                with lock as lease:
                    work(lease)
            with lock:  # what another client gets meanwhile
                try:
                    lock.acquire(wait=1)
                except holdfast.TimedOut as busy:
                    print(f"TimedOut, code {busy.code}")
        except holdfast.TimedOut:
            print("another client holds it", file=sys.stderr)
            return 75
        except holdfast.Lost as lost:  # at the end of the block: the work may have collided
            print(f"lost: {lost}", file=sys.stderr)
            return 76
        except holdfast.Error as broken:
            print(broken, file=sys.stderr)
            return 69
    return 0


if __name__ == "__main__":
    sys.exit(main())
