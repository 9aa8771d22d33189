"""redis-py's own Lock: SERVERS is a port."""
import sys

import redis
from redis.lock import Lock

from witness import arguments

servers, witness, name, rounds = arguments()
server = redis.Redis(port=int(servers))
for _ in range(rounds):
    lock = Lock(server, name, timeout=3.0, sleep=0.002)
    if not lock.acquire(blocking=True, blocking_timeout=60):
        sys.exit("redis-py did not get the lock within a minute")
    witness.work()
    lock.release()
