"""`etcdctl lock`, round after round, with etcdctl_work.sh as its command: SERVERS is an endpoint."""
import sys

from contention import etcdctl_lock
from witness import arguments

servers, witness, name, rounds = arguments()
for _ in range(rounds):
    lock = etcdctl_lock(servers, witness.store_port, name, witness.folder)
    lock.communicate(timeout=120)
    if lock.returncode != 0:
        sys.exit(f"etcdctl lock ended with {lock.returncode}")
