"""turn.py URL NAME: acquires the lock if it is free, and prints the token; 75 if another client holds it."""
import sys

import holdfast

with holdfast.open(sys.argv[1]) as client:
    lease = client.lock(sys.argv[2]).try_acquire()
    if lease is None:
        sys.exit(75)
    print(lease.token)
    lease.release()
