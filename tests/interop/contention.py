"""Another library's lock and Holdfast exclude each other on one name.

Four processes of each side contend; holders of both sides are killed with SIGKILL; a witness (a link that
only one can make) and a counter that is read and written in two steps watch from outside. The same run with
different names has to make the witness complain. What Holdfast's side recorded itself is judged besides, as
far as one side can be.

`etcdctl lock` lets its command run on when its lease has ended. So its command looks for its key before it
leaves, when it has met somebody: a key that is gone makes the overlap etcdctl's own. Both are shown: an
etcdctl that is stopped or killed, and a worker that goes in without the lock.

usage: contention.py CASE HOLDFAST_WORKER HOLDFAST_LAB HISTORY_CHECKER [--rounds N] [--curator CLASSES]
                     [--node MODULES]
"""
import argparse
import glob
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import redis

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from lab import Lab  # noqa: E402

SIDES = 4
ROUNDS = 260  # of each process, unless told; what the killed ones leave undone is more than made up for
JARS = ["curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute", "guava",
        "slf4j-api", "slf4j-nop", "netty-handler", "netty-transport", "netty-common", "netty-buffer",
        "netty-codec", "netty-resolver"]
CLASS_PATH = ":".join(f"/usr/share/java/{jar}.jar" for jar in JARS)


def etcdctl_lock(endpoint, store_port, name, folder, ttl=5):
    """One `etcdctl lock` with etcdctl_work.sh; this process is its client. What it says is thrown away."""
    work = ["sh", os.path.join(HERE, "etcdctl_work.sh"), str(os.getpid()), str(store_port), folder, endpoint]
    return subprocess.Popen(["etcdctl", "--endpoints", endpoint, "--dial-timeout", "60s", "lock", "--ttl", str(ttl),
                             "/holdfast/" + name, "--", *work],
                            env={**os.environ, "ETCDCTL_API": "3"}, stdout=subprocess.PIPE, text=True)


class Case:
    """Where both sides contend, how Holdfast is told of it, and how the other side is started."""

    def __init__(self, options):
        self.options = options
        self.rounds = self.rounds * options.rounds // ROUNDS
        self.control_rounds = self.control_rounds * options.rounds // ROUNDS
        self.lab = Lab(options.lab, self.kind, self.count)

    kind, count, permits = "redis", 1, 1
    rounds = control_rounds = ROUNDS

    def reset(self):
        for port in self.lab.ports:
            redis.Redis(port=port).flushall()

    def foreign(self, store_port, name, folder, rounds):
        return self.program() + [self.servers(), str(store_port), name, folder, str(rounds)]

    def servers(self):
        return ",".join(str(port) for port in self.lab.ports)

    def environment(self):
        return os.environ

    def prove_the_witness(self, store_port):
        pass

    polling = "wait=poll&ttl=3s&request_timeout=2s&backoff_min=1ms&backoff_max=4ms"

    def url(self):
        return f"redis://127.0.0.1:{self.lab.ports[0]}?{self.polling}"


class RedisPy(Case):
    def program(self):
        return [sys.executable, os.path.join(HERE, "redis_py.py")]


class Node(Case):
    script = None

    def program(self):
        return ["node", os.path.join(HERE, "node", self.script)]

    def environment(self):
        return {**os.environ, "HOLDFAST_INTEROP_MODULES": self.options.node}


class RedisSemaphore(Node):
    script = "semaphore.mjs"

    def url(self):
        return super().url() + "&namespace=mutex:"


class Redlock(Node):
    script, count = "redlock.mjs", 5

    def url(self):
        nodes = ",".join(f"127.0.0.1:{port}" for port in self.lab.ports)
        # The nodes are fresh; nobody can have a lease from before.
        return f"redlock://{nodes}?durable=yes&ttl=3s&request_timeout=2s&backoff_min=20ms&backoff_max=120ms"

    def environment(self):
        # Everybody polls: who asks again at once keeps the others out for long.
        return {**super().environment(), "HOLDFAST_TEST_PAUSE_MS": "20"}


class ZooKeeper(Case):
    kind = "zookeeper"
    lock_kind = "mutex"

    def foreign(self, *what):
        return super().foreign(*what) + [self.lock_kind]

    def environment(self):
        return {**os.environ, "HOLDFAST_TEST_KIND": self.lock_kind, "HOLDFAST_TEST_PERMITS": str(self.permits)}

    def reset(self):
        pass  # each run has names of its own

    def servers(self):
        return f"127.0.0.1:{self.lab.ports[0]}"

    def url(self):
        return f"zookeeper://127.0.0.1:{self.lab.ports[0]}?ttl=5s&tick_time=100ms&request_timeout=4s"


class Kazoo(ZooKeeper):
    def program(self):
        return [sys.executable, os.path.join(HERE, "kazoo_lock.py")]


class Curator(ZooKeeper):
    def program(self):
        return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx64m", "-cp",
                self.options.curator + ":" + CLASS_PATH, "CuratorLock"]


class KazooWriters(Kazoo):
    lock_kind = "shared_mutex"


class CuratorReadersAndWriters(Curator):
    lock_kind = "shared_mutex"


class CuratorSemaphore(Curator):
    lock_kind = "semaphore"


class CuratorPermits(Curator):
    """SemaphoreV2: more than one holds at a time, and never more than its permits."""
    lock_kind, permits = "semaphore", 2
    rounds = control_rounds = ROUNDS // 2

    def foreign(self, *what):
        return super().foreign(*what) + [str(self.permits)]


class Elections:
    """Candidates of ours, with Election."""
    rounds = control_rounds = ROUNDS // 2

    def environment(self):
        return {**super().environment(), "HOLDFAST_TEST_KIND": "election"}


class CuratorSelector(Elections, Curator):
    lock_kind = "selector"


class CuratorLatch(Elections, Curator):
    lock_kind = "latch"

    def url(self):
        return super().url() + "&node=latch-"


class KazooElection(Elections, Kazoo):
    lock_kind = "election"


class Etcdctl(Case):
    kind = "etcd"
    control_rounds = ROUNDS // 4  # each starts six processes

    def reset(self):
        pass  # each run has names of its own

    def program(self):
        return [sys.executable, os.path.join(HERE, "etcdctl_lock.py")]

    def servers(self):
        return f"http://127.0.0.1:{self.lab.ports[0]}"

    def url(self):
        return f"etcd://127.0.0.1:{self.lab.ports[0]}?ttl=5s&request_timeout=4s"

    def prove_the_witness(self, store_port):
        """Overlaps of either making, which the witness has to tell apart."""
        for what, stop, mode, whose in (
                ("etcdctl is killed, its command lives on", signal.SIGKILL, "lock", "theirs"),
                ("etcdctl is stopped, its command lives on", signal.SIGSTOP, "lock", "theirs"),
                ("a worker of ours goes in without the lock", None, "no-lock", "ours")):
            seen = self.overlap(store_port, f"witness-{whose}-{stop}", stop, mode)
            print(f"{what}:", seen, flush=True)
            assert seen == {"ours": 0, "theirs": 0, whose: 1}, "the witness blames the wrong side"

    def overlap(self, store_port, name, stop, mode):
        store = redis.Redis(port=store_port)
        store.flushall()
        store.set("go", 1)
        with tempfile.TemporaryDirectory(prefix="holdfast-interop-") as folder:
            leave = os.path.join(folder, "leave")
            os.mkfifo(leave)
            # Open for both, so that neither side waits for the other here.
            word = os.open(leave, os.O_RDWR)
            theirs = etcdctl_lock(self.servers(), store_port, name, folder, ttl=2)
            ours = None
            try:
                wait_for(lambda: store.get("done"), "etcdctl's command to be at work")
                if stop:
                    theirs.send_signal(stop)
                ours = subprocess.Popen([self.options.worker, self.url(), name, folder, str(store_port), "1", mode])
                if ours.wait(timeout=60) != 0:
                    sys.exit("the worker beside etcdctl's command failed")
                os.write(word, b"leave\n")
                if stop:
                    theirs.send_signal(signal.SIGCONT)
                theirs.communicate(timeout=60)  # until the command has closed its output
                return judge(store)
            finally:
                os.close(word)
                for process in filter(None, (ours, theirs)):
                    process.kill()
                    process.wait()


CASES = {"redis-py": RedisPy, "redis-semaphore": RedisSemaphore, "redlock": Redlock, "kazoo": Kazoo,
         "curator": Curator, "etcdctl": Etcdctl, "kazoo-writers": KazooWriters,
         "curator-readers": CuratorReadersAndWriters, "curator-semaphore": CuratorSemaphore,
         "curator-permits": CuratorPermits, "curator-selector": CuratorSelector, "curator-latch": CuratorLatch,
         "kazoo-election": KazooElection}


def wait_for(look, what, pause=0.002):
    """What `look` returns, once that is something; it is asked every `pause` seconds."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        found = look()
        if found:
            return found
        time.sleep(pause)
    sys.exit(f"waited a minute for {what}")


def pick_holder(store, folder, side, done_at):
    """The process of this side that holds, once so many rounds are done."""
    def look():
        if int(store.get("done") or 0) < done_at:
            return None
        try:
            pid = int(os.readlink(os.path.join(folder, "witness")).split()[0])
        except FileNotFoundError:
            return None
        return next((process for process in side if process.pid == pid), None)

    return wait_for(look, "a holder of one side", pause=0)  # who holds may be gone in a moment


def run(case, store_port, same_name, kills, seed):
    """One contention; returns what the witness saw."""
    chance = random.Random(seed)
    case.reset()
    store = redis.Redis(port=store_port)
    store.flushall()
    name = f"shared-{seed}-{kills}"
    rounds = case.rounds if same_name else case.control_rounds
    with tempfile.TemporaryDirectory(prefix="holdfast-interop-") as folder:
        sides = {"ours": [], "theirs": []}

        def start(which):
            own = name if same_name else f"{name}-{which}"
            if which == "ours":
                words = [case.options.worker, case.url(), own, folder, str(store_port), str(rounds), "lock"]
            else:
                words = case.foreign(store_port, own, folder, rounds)
            # With a group of its own: a client may have further processes.
            sides[which].append(subprocess.Popen(words, env=case.environment(), process_group=0))

        try:
            seen = contend(store, folder, sides, start, kills, lambda: chance.randint(5, rounds // 5))
            if same_name and case.permits == 1:  # the checker knows one holder
                seen["recorded"] = check_history(case.options.checker, folder)
            return seen
        finally:
            for process in sides["ours"] + sides["theirs"]:
                kill(process)


def kill(process):
    """With all that it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def judge(store):
    """Whose the overlaps are, as far as who met said whom: theirs, where their key was gone by then."""
    outlived = {key.decode() for key in store.smembers("outlived")}
    whose = {"ours": 0, "theirs": 0}
    for met in store.lrange("met", 0, -1):
        words = met.decode().split()
        whose["theirs" if outlived.intersection(words) else "ours"] += 1
    return whose


def check_history(checker, folder):
    """How many grants Holdfast's workers recorded; ends the test when these cannot all be right."""
    files = glob.glob(os.path.join(folder, "*.history"))
    # The others record nothing.
    told = subprocess.run([checker, "--others", "--json", *files], capture_output=True, text=True, check=False)
    if told.returncode != 0:
        sys.exit(f"the history: {told.stdout}{told.stderr}")
    return json.loads(told.stdout)["figures"]["granted"]


def contend(store, folder, sides, start, kills, further):
    """Starts everybody, kills holders after so many `further` rounds each, waits for the end; what the witness saw."""
    for _ in range(SIDES):
        start("ours")
        start("theirs")
    # Ours wait for this; the others take their time to start, and ours could be through by then.
    wait_for(lambda: int(store.get("foreign") or 0) > 0, "the other library's clients to begin")
    store.set("go", 1)
    killed = {"ours": 0, "theirs": 0}
    for _ in range(kills):
        for which, side in sides.items():
            at = int(store.get("done") or 0) + further()
            victim = pick_holder(store, folder, side, at)
            kill(victim)
            side.remove(victim)
            killed[which] += 1
            start(which)
    for process in sides["ours"] + sides["theirs"]:
        if process.wait(timeout=420) != 0:
            sys.exit(f"a worker failed with {process.returncode}: {process.args}")
    number = lambda key: int(store.get(key) or 0)
    theirs = judge(store)["theirs"]
    return {"done": number("done"), "counter": number("counter"), "overlaps": number("overlaps") - theirs,
            "theirs": theirs,
            "foreign": number("foreign"), "killed": killed, "together": number("together")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("worker")
    parser.add_argument("lab")
    parser.add_argument("checker")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--curator")
    parser.add_argument("--node")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of `finally`
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed, flush=True)
    store = Lab(options.lab, "redis")
    case = CASES[options.case](options)
    try:
        seen = run(case, store.ports[0], True, 2, seed)
        print("one name:       ", seen, flush=True)
        assert seen["overlaps"] == 0, "two holders at once"
        assert seen["counter"] == seen["done"] or seen["theirs"], "updates were lost"
        assert (seen["together"] > 0) == (case.permits > 1), "as many as have a permit hold at once"
        # Those that were killed have done less than their rounds, and others take their places.
        assert seen["done"] >= 2 * SIDES * case.rounds * 25 // 26, "fewer acquisitions than the rounds of all"
        least = case.rounds * SIDES // 2
        assert least < seen["foreign"] < seen["done"] - least, "one side hardly took part"
        assert min(seen["killed"].values()) >= 2
        if "recorded" in seen:
            # A killed worker of ours may have recorded a grant whose work was not done any more.
            unseen = seen["recorded"] - (seen["done"] - seen["foreign"])
            assert 0 <= unseen <= 2, "not every acquisition was recorded"
        for again in range(3):  # on a busy machine the two sides may happen to take turns
            control = run(case, store.ports[0], False, 0, seed + again)
            print("different names:", control, flush=True)
            if control["overlaps"] > 0:
                break
        assert control["overlaps"] > 0, "the witness did not notice that nobody excluded anybody"
        case.prove_the_witness(store.ports[0])
    finally:
        case.lab.close()
        store.close()


if __name__ == "__main__":
    main()
