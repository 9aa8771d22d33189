"""kazoo's Semaphore and Holdfast on one name, step by step: what each does beside the other's nodes.

Its leases have names at random, it counts whatever is below the name, and keeps its limit in the data of the name's
node. So Holdfast refuses a name with a lease of its; and it comes beside locks of ours, up to its limit.

usage: kazoo_steps.py STEPS HOLDFAST_LAB
"""
import sys

from kazoo.client import KazooClient

from contention import Lab, wait_for
from steps import Actor

# How each kind of ours is asked for: kind, mode, limit.
KINDS = {"mutex": ("mutex", "exclusive", 1), "writer": ("shared_mutex", "exclusive", 1),
         "reader": ("shared_mutex", "shared", 1), "semaphore": ("semaphore", "exclusive", 3)}


class Ground:
    """A server, kazoo's client, and a name for each part."""

    def __init__(self, program, lab):
        self.program, self.lab = program, Lab(lab, "zookeeper")
        self.hosts = f"127.0.0.1:{self.lab.ports[0]}"
        self.kazoo = KazooClient(hosts=self.hosts, timeout=10.0)
        self.kazoo.start(timeout=30)
        self.actors = []

    def ours(self, name):
        self.actors.append(Actor("ours", self.program, f"zookeeper://{self.hosts}?ttl=5s&tick_time=100ms", name))
        return self.actors[-1]

    def semaphore(self, name, limit):
        return self.kazoo.Semaphore("/holdfast/" + name, "kazoo", max_leases=limit)

    def below(self, name):
        return sorted(self.kazoo.get_children("/holdfast/" + name))

    def close(self):
        for actor in self.actors:
            actor.close()
        self.kazoo.stop()
        self.lab.close()


def refused(ours, kind, wait, lease):
    said = ours.ask("acquire", *KINDS[kind], wait)
    assert said.startswith("kind_mismatch") and lease in said and "kazoo's Semaphore" in said, (kind, said)


def theirs_first(ground):
    """A lease is there: whoever asks is refused at once, whatever kind, and leaves nothing."""
    ours = ground.ours("N")
    # The name is known to our session, and is not kazoo's: its limit is not kept there.
    for _ in range(3):
        assert ours.ask("acquire", *KINDS["mutex"], 0) == "granted" and ours.ask("release") == "released"
    theirs = ground.semaphore("N", 3)
    assert theirs.acquire(blocking=False)
    lease, = ground.below("N")
    for kind in KINDS:
        for wait in (0, 20000):
            refused(ours, kind, wait, lease)
    said = ours.ask("inspect")
    assert said.startswith("kind_mismatch") and lease in said, said
    wait_for(lambda: ground.below("N") == [lease], "nothing of ours to be left")
    assert theirs.release()
    for kind in KINDS:
        assert ours.ask("acquire", *KINDS[kind], 5000) == "granted" and ours.ask("release") == "released", kind
    print("theirs, then ours: refused")


def theirs_made_it(ground):
    """kazoo has made the node of the name, and keeps its limit there: also without a lease, no semaphore of ours."""
    theirs, ours = ground.semaphore("made", 3), ground.ours("made")
    assert theirs.acquire(blocking=False)
    for kind in ("mutex", "reader"):
        refused(ours, kind, 0, ground.below("made")[0])
    assert theirs.release()
    said = ours.ask("acquire", *KINDS["semaphore"], 0)
    assert said.startswith("kind_mismatch") and "data of the node" in said, said
    wait_for(lambda: not ground.below("made"), "nothing of ours to be left")
    assert ground.kazoo.get("/holdfast/made")[0] == b"3"
    print("theirs by name: its limit stays, and refuses a semaphore of ours")


def ours_first(ground):
    """A lock of ours is held: one more lease, for them."""
    for kind in ("mutex", "writer", "reader"):
        ours = ground.ours("held-" + kind)
        assert ours.ask("acquire", *KINDS[kind], 0) == "granted"
        assert not ground.semaphore("held-" + kind, 1).acquire(blocking=False), "our node counts as a lease"
        theirs = ground.semaphore("held-" + kind, 2)
        assert theirs.acquire(blocking=False), "it has waited for ours: the README says that it does not"
        # The holder keeps what it holds; who asks next is refused.
        refused(ground.ours("held-" + kind), kind, 0, theirs.create_path)
        assert ours.ask("release") == "released" and theirs.release()
    ours = ground.ours("held-semaphore")
    assert ours.ask("acquire", *KINDS["semaphore"], 0) == "granted"
    for limit in (1, 3):
        try:
            ground.semaphore("held-semaphore", limit).acquire(blocking=False)
            raise AssertionError("it took our limit for its own")
        except ValueError as error:
            assert "Inconsistent max leases: -3" in str(error), error
    assert ours.ask("release") == "released"
    print("ours, then theirs: beside a line, up to their limit; not beside permits")


def theirs_meanwhile(ground):
    """A lease comes while one of ours holds and others wait: those are refused by the next look."""
    holder, writer, reader = (ground.ours("meanwhile") for _ in range(3))
    assert holder.ask("acquire", *KINDS["mutex"], 0) == "granted"
    writer.tell("acquire", *KINDS["mutex"], 30000)
    reader.tell("acquire", *KINDS["reader"], 30000)
    wait_for(lambda: len(ground.below("meanwhile")) == 3, "two that wait")
    theirs = ground.semaphore("meanwhile", 9)
    assert theirs.acquire(blocking=False)
    for waiter in (writer, reader):
        said = waiter.answer()
        assert said.startswith("kind_mismatch") and theirs.create_path in said, said
    assert holder.ask("release") == "released"
    refused(writer, "mutex", 0, theirs.create_path)
    assert theirs.release()
    print("theirs while ours wait: the waiters are refused")


def main():
    ground = Ground(*sys.argv[1:])
    try:
        for part in (theirs_first, theirs_made_it, ours_first, theirs_meanwhile):
            part(ground)
    finally:
        ground.close()


if __name__ == "__main__":
    main()
