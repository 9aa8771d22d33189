"""Another library's lock and Holdfast exclude each other on one name.

Four processes of each side contend; holders of both sides are killed with SIGKILL; a witness (a link that
only one can make) and a counter that is read and written in two steps watch from outside. The same run with
different names has to make the witness complain. What Holdfast's side recorded itself is judged besides, as
far as one side can be.

usage: contention.py CASE HOLDFAST_WORKER HOLDFAST_LAB HISTORY_CHECKER [--curator CLASSES] [--node MODULES]
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
SIDES = 4
ROUNDS = 260  # of each process; what the killed ones leave undone is more than made up for
JARS = ["curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute", "guava",
        "slf4j-api", "slf4j-nop", "netty-handler", "netty-transport", "netty-common", "netty-buffer",
        "netty-codec", "netty-resolver"]
CLASS_PATH = ":".join(f"/usr/share/java/{jar}.jar" for jar in JARS)


class Lab:
    """Servers of the project's own lab, until close()."""

    def __init__(self, program, kind, count=1):
        # A pipe at its standard input: the lab ends with this process, whatever becomes of it.
        self.process = subprocess.Popen([program, kind, "--count", str(count)], stdout=subprocess.PIPE,
                                        stdin=subprocess.PIPE, text=True)
        self.ports = []
        while len(self.ports) < count:
            line = self.process.stdout.readline()
            if not line:
                sys.exit(f"the lab did not start {kind}")
            if "://" in line and " " not in line.strip():
                self.ports.append(int(line.strip().split("?")[0].rsplit(":", 1)[1].split("/")[0]))

    def close(self):
        self.process.terminate()
        self.process.wait()


class Case:
    """Where both sides contend, how Holdfast is told of it, and how the other side is started."""

    def __init__(self, options):
        self.options = options
        self.lab = Lab(options.lab, self.kind, self.count)

    kind, count = "redis", 1

    def reset(self):
        for port in self.lab.ports:
            redis.Redis(port=port).flushall()

    def foreign(self, store_port, name, folder, rounds):
        return self.program() + [self.servers(), str(store_port), name, folder, str(rounds)]

    def servers(self):
        return ",".join(str(port) for port in self.lab.ports)

    def environment(self):
        return os.environ

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


CASES = {"redis-py": RedisPy, "redis-semaphore": RedisSemaphore, "redlock": Redlock, "kazoo": Kazoo,
         "curator": Curator}


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
            pid = int(os.readlink(os.path.join(folder, "witness")))
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
    with tempfile.TemporaryDirectory(prefix="holdfast-interop-") as folder:
        sides = {"ours": [], "theirs": []}

        def start(which):
            own = name if same_name else f"{name}-{which}"
            if which == "ours":
                words = [case.options.worker, case.url(), own, folder, str(store_port), str(ROUNDS), "lock"]
            else:
                words = case.foreign(store_port, own, folder, ROUNDS)
            sides[which].append(subprocess.Popen(words, env=case.environment()))

        try:
            seen = contend(store, folder, sides, start, kills, chance)
            if same_name:
                seen["recorded"] = check_history(case.options.checker, folder)
            return seen
        finally:
            for process in sides["ours"] + sides["theirs"]:
                process.kill()
                process.wait()


def check_history(checker, folder):
    """How many grants Holdfast's workers recorded; ends the test when these cannot all be right."""
    files = glob.glob(os.path.join(folder, "*.history"))
    # The others record nothing.
    told = subprocess.run([checker, "--others", "--json", *files], capture_output=True, text=True, check=False)
    if told.returncode != 0:
        sys.exit(f"the history: {told.stdout}{told.stderr}")
    return json.loads(told.stdout)["figures"]["granted"]


def contend(store, folder, sides, start, kills, chance):
    """Starts everybody, kills holders, waits for the end; what the witness saw."""
    for _ in range(SIDES):
        start("ours")
        start("theirs")
    # Ours wait for this; the others take their time to start, and ours could be through by then.
    wait_for(lambda: int(store.get("foreign") or 0) > 0, "the other library's clients to begin")
    store.set("go", 1)
    killed = {"ours": 0, "theirs": 0}
    for _ in range(kills):
        for which, side in sides.items():
            at = int(store.get("done") or 0) + chance.randint(5, 60)
            victim = pick_holder(store, folder, side, at)
            victim.send_signal(signal.SIGKILL)
            victim.wait()
            side.remove(victim)
            killed[which] += 1
            start(which)
    for process in sides["ours"] + sides["theirs"]:
        if process.wait(timeout=240) != 0:
            sys.exit(f"a worker failed with {process.returncode}: {process.args}")
    number = lambda key: int(store.get(key) or 0)
    return {"done": number("done"), "counter": number("counter"), "overlaps": number("overlaps"),
            "foreign": number("foreign"), "killed": killed}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("worker")
    parser.add_argument("lab")
    parser.add_argument("checker")
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
        assert seen["counter"] == seen["done"], "updates were lost"
        assert seen["done"] >= 2000, "fewer than 2,000 acquisitions"
        # What the foreign processes did that were killed is missing from their 260 rounds each.
        assert 500 < seen["foreign"] < seen["done"] - 500, "one side hardly took part"
        assert min(seen["killed"].values()) >= 2
        # A killed worker of ours may have recorded a grant whose work was not done any more.
        assert 0 <= seen["recorded"] - (seen["done"] - seen["foreign"]) <= 2, "not every acquisition was recorded"
        control = run(case, store.ports[0], False, 0, seed)
        print("different names:", control, flush=True)
        assert control["overlaps"] > 0, "the witness did not notice that nobody excluded anybody"
    finally:
        case.lab.close()
        store.close()


if __name__ == "__main__":
    main()
