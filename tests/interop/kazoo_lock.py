"""kazoo's own Lock, told of the other layout's nodes: SERVERS is a connect string."""
import sys

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock

from witness import arguments

servers, witness, name, rounds = arguments()
client = KazooClient(hosts=servers, timeout=5.0)
client.start(timeout=30)
lock = Lock(client, "/holdfast/" + name, "kazoo", extra_lock_patterns=["-lock-"])
for _ in range(rounds):
    if not lock.acquire(timeout=60):
        sys.exit("kazoo did not get the lock within a minute")
    witness.work()
    lock.release()
client.stop()
