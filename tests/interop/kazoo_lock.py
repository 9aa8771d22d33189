"""kazoo's own locks, told of the other layouts' nodes: SERVERS is a connect string; then mutex|shared_mutex|election."""
import sys

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock, WriteLock

from witness import arguments

kind = sys.argv.pop()
servers, witness, name, rounds = arguments()
client = KazooClient(hosts=servers, timeout=5.0)
client.start(timeout=30)
path = "/holdfast/" + name
recipe, patterns = (WriteLock, ["-lock-", "__WRIT__", "__READ__"]) if kind == "shared_mutex" else (Lock, ["-lock-"])
lock = recipe(client, path, "kazoo", extra_lock_patterns=patterns)
election = client.Election(path, "kazoo")
election.lock = lock  # its own one takes no patterns
for _ in range(rounds):
    if kind == "election":
        election.run(witness.work)
        continue
    if not lock.acquire(timeout=60):
        sys.exit("kazoo did not get the lock within a minute")
    witness.work()
    lock.release()
client.stop()
