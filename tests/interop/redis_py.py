"""redis-py's own Lock and Holdfast exclude each other on one name.

Four processes of each side contend with `wait=poll`; holders of both sides are killed with SIGKILL; a
witness (a link that only one can make) and a counter that is read and written in two steps watch from outside. The
same run with different key names has to make the witness complain.

usage: redis_py.py HOLDFAST_WORKER HOLDFAST_LAB
"""
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import redis
from redis.lock import Lock

SIDES = 4
ROUNDS = 260  # of each process; what the killed ones leave undone is more than made up for
TTL = 1.0


def enter(witness):
    """Makes the witness; False when somebody who lives has made it.

    A symbolic link whose text is the process: exclusive like O_CREAT|O_EXCL, and never there without its
    text, whenever its maker is killed.
    """
    me = str(os.getpid())
    try:
        os.symlink(me, witness)
        return True
    except FileExistsError:
        pass
    try:
        os.kill(int(os.readlink(witness)), 0)
        return False
    except FileNotFoundError:
        return False
    except ProcessLookupError:
        pass
    try:
        os.unlink(witness)
        os.symlink(me, witness)
        return True
    except (FileNotFoundError, FileExistsError):
        return False


def foreign_worker(lock_port, store_port, name, folder, rounds):
    server, store = redis.Redis(port=lock_port), redis.Redis(port=store_port)
    witness = os.path.join(folder, "witness")
    for _ in range(rounds):
        lock = Lock(server, name, timeout=TTL, sleep=0.002)
        if not lock.acquire(blocking=True, blocking_timeout=60):
            sys.exit("redis-py did not get the lock within a minute")
        if not enter(witness):
            store.incr("overlaps")
        n = int(store.get("counter") or 0)
        store.eval("redis.call('SET','counter',ARGV[1]) redis.call('INCR','done')", 0, n + 1)
        store.incr("foreign")
        try:
            os.unlink(witness)
        except FileNotFoundError:
            pass
        lock.release()


def start_lab(lab):
    process = subprocess.Popen([lab, "redis", "--count", "2"], stdout=subprocess.PIPE,
                               stdin=subprocess.PIPE, text=True)
    ports = []
    while len(ports) < 2:
        line = process.stdout.readline()
        if not line:
            sys.exit("the lab did not start")
        if line.startswith("redis://"):
            ports.append(int(line.strip().rsplit(":", 1)[1]))
    return process, ports


def run(worker, ports, same_name, kills, seed):
    """One contention; returns what the witness saw."""
    chance = random.Random(seed)
    lock_port, store_port = ports
    redis.Redis(port=lock_port).flushall()
    store = redis.Redis(port=store_port)
    store.flushall()
    store.set("go", 1)
    with tempfile.TemporaryDirectory(prefix="holdfast-interop-") as folder:
        ours, theirs = [], []

        def start_ours(rounds):
            ours.append(subprocess.Popen(
                [worker, f"redis://127.0.0.1:{lock_port}?wait=poll&ttl={int(TTL * 1000)}ms"
                         "&backoff_min=1ms&backoff_max=4ms",
                 "shared" if same_name else "ours", folder, str(store_port), str(rounds), "lock"]))

        def start_theirs(rounds):
            theirs.append(subprocess.Popen(
                [sys.executable, __file__, "--foreign", str(lock_port), str(store_port),
                 "shared" if same_name else "theirs", folder, str(rounds)]))

        for _ in range(SIDES):
            start_ours(ROUNDS)
            start_theirs(ROUNDS)
        killed = {"ours": 0, "theirs": 0}
        for _ in range(kills):
            for side, name, start in ((ours, "ours", start_ours), (theirs, "theirs", start_theirs)):
                at = int(store.get("done") or 0) + chance.randint(5, 60)
                give_up = time.monotonic() + 60
                victim = None
                while time.monotonic() < give_up:
                    if int(store.get("done") or 0) >= at:
                        # The holder itself, when it is of the wanted side.
                        try:
                            pid = int(os.readlink(os.path.join(folder, "witness")))
                        except FileNotFoundError:
                            continue
                        victim = next((p for p in side if p.pid == pid), None)
                        if victim:
                            break
                if not victim:
                    sys.exit(f"no holder of side {name} was seen within a minute")
                victim.send_signal(signal.SIGKILL)
                victim.wait()
                side.remove(victim)
                killed[name] += 1
                start(ROUNDS)
        for process in ours + theirs:
            if process.wait(timeout=180) != 0:
                sys.exit(f"a worker failed with {process.returncode}")
        number = lambda key: int(store.get(key) or 0)
        return {"done": number("done"), "counter": number("counter"), "overlaps": number("overlaps"),
                "foreign": number("foreign"), "killed": killed}


def main(worker, lab):
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    process, ports = start_lab(lab)
    try:
        seen = run(worker, ports, True, 2, seed)
        print("one name:       ", seen)
        assert seen["overlaps"] == 0, "two holders at once"
        assert seen["counter"] == seen["done"], "updates were lost"
        assert seen["done"] >= 2000, "fewer than 2,000 acquisitions"
        assert 500 < seen["foreign"] < seen["done"] - 500, "one side hardly took part"
        assert min(seen["killed"].values()) >= 2
        control = run(worker, ports, False, 0, seed)
        print("different names:", control)
        assert control["overlaps"] > 0, "the witness did not notice that nobody excluded anybody"
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    if sys.argv[1] == "--foreign":
        foreign_worker(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5], int(sys.argv[6]))
    else:
        main(sys.argv[1], sys.argv[2])
