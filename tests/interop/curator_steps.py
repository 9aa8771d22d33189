"""Curator's SemaphoreMutex and ReadWriteLock beside Holdfast, step by step.

The downgrade of Curator 5.4 (read while the write lock is held, then release that) leaves its reader behind whoever
waits: a writer that waits is let in beside it, of Curator's or of ours (CURATOR-621, mended in 5.5). The witness has
to say whose fault an overlap is, and that ours has none.

usage: curator_steps.py STEPS HOLDFAST_LAB CLASSES
"""
import glob
import os
import re
import sys

from kazoo.client import KazooClient

from contention import CLASS_PATH, Lab, wait_for
from steps import Actor, Witness


class Ground:
    """A server, two of Curator's, and as many of ours as a part wants."""

    def __init__(self, program, lab, classes):
        self.program, self.lab = program, Lab(lab, "zookeeper")
        self.hosts = f"127.0.0.1:{self.lab.ports[0]}"
        java = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx64m", "-cp", classes + ":" + CLASS_PATH,
                "CuratorSteps", self.hosts]
        self.one, self.two = (Actor(who, *java, who) for who in ("one", "two"))
        self.actors = [self.one, self.two]
        self.client = KazooClient(hosts=self.hosts, timeout=10.0)
        self.client.start(timeout=30)

    def ours(self, name):
        self.actors.append(Actor("ours", self.program, f"zookeeper://{self.hosts}?ttl=5s&tick_time=100ms", name))
        return self.actors[-1]

    def in_line(self, name, count):
        wait_for(lambda: len(self.client.get_children("/holdfast/" + name)) == count, f"{count} in line")

    def close(self):
        for actor in self.actors:
            actor.close()
        self.client.stop()
        self.lab.close()


LOCKS = (("mutex", "exclusive"), ("shared_mutex", "exclusive"), ("shared_mutex", "shared"))


def permit_first(ground):
    """Its permit is there: a semaphore of one permit waits for it, a lock of ours is refused."""
    ours = ground.ours("P")
    assert ground.one.ask("acquire", "permit", "P", 20000) == "granted"
    for kind in LOCKS:
        for wait in (0, 20000):
            said = ours.ask("acquire", *kind, 1, wait)
            assert said.startswith("kind_mismatch"), (kind, said)
    assert ours.ask("acquire", "semaphore", "exclusive", 1, 0).startswith("contended")
    ours.tell("acquire", "semaphore", "exclusive", 1, 30000)
    assert ours.waits()
    assert ground.one.ask("release", "permit", "P") == "released"
    assert ours.answer() == "granted"
    assert ground.one.ask("acquire", "permit", "P", 700) == "timed_out"
    assert ours.ask("release") == "released"
    assert ground.one.ask("acquire", "permit", "P", 20000) == "granted"
    # Curator keeps no limit: to be configured alike, as the README says.
    assert ground.ours("P").ask("acquire", "semaphore", "exclusive", 2, 0).startswith("kind_mismatch"), "P has ours: 1"
    assert ground.one.ask("release", "permit", "P") == "released"
    assert ground.one.ask("acquire", "permit", "Q", 20000) == "granted"
    beside = ground.ours("Q")
    assert beside.ask("acquire", "semaphore", "exclusive", 2, 0) == "granted"
    assert beside.ask("release") == "released" and ground.one.ask("release", "permit", "Q") == "released"
    print("a permit of Curator's: one queue with ours of that limit, locks are refused")


def permit_beside(ground):
    """A lock of ours is held: its permit comes beside, as it does not look there."""
    for kind in LOCKS:
        name = "beside-" + "-".join(kind)
        ours = ground.ours(name)
        assert ours.ask("acquire", *kind, 1, 0) == "granted"
        assert ground.one.ask("acquire", "permit", name, 20000) == "granted", "the README says that it does not look"
        assert ground.ours(name).ask("acquire", *kind, 1, 0).startswith("kind_mismatch")
        assert ours.ask("release") == "released" and ground.one.ask("release", "permit", name) == "released"
    print("a lock of ours: a permit of Curator's comes beside")


def keeps_its_place():
    """Whether the installed Curator's downgrade does."""
    (jar,) = glob.glob("/usr/share/java/curator-recipes-[0-9]*.jar")
    return tuple(map(int, re.findall(r"\d+", os.path.basename(jar))[:2])) >= (5, 5)


def curators_downgrade(ground, waiter, name):
    """Curator's downgrade while a writer waits; before 5.5 the witness blames Curator's reader, whoever the writer is."""
    witness = Witness(ground.client, name)
    assert ground.one.ask("acquire", "write", name, 20000) == "granted"
    if waiter is ground.two:
        waiter.tell("acquire", "write", name, 30000)
    else:
        waiter.tell("acquire", "shared_mutex", "exclusive", 1, 30000)
    ground.in_line(name, 2)
    assert ground.one.ask("acquire", "read", name, 20000) == "granted"
    assert waiter.waits()
    assert ground.one.ask("release", "write", name) == "released"
    witness.enters("one", True)
    if keeps_its_place():
        assert waiter.waits()
    else:
        assert waiter.answer() == "granted"
        witness.enters(waiter.name, False)
        assert witness.blames() == {"one"}, (witness.inside, witness.line())
    witness.leaves("one")
    assert ground.one.ask("release", "read", name) == "released"
    if keeps_its_place():
        assert waiter.answer() == "granted"
        witness.enters(waiter.name, False)
    assert not witness.blames(), (witness.inside, witness.line())
    said = waiter.ask("release", "write", name) if waiter is ground.two else waiter.ask("release")
    assert said == "released"
    seen = "it waits until Curator's reader has left" if keeps_its_place() else "two are in, and the fault is Curator's"
    print(f"Curator's downgrade, a writer waits ({waiter.name}): {seen}")


def curators_downgrade_and_readers(ground):
    """Where a reader of ours waits, nothing is wrong with it."""
    name, ours = "their-readers", ground.ours("their-readers")
    witness = Witness(ground.client, name)
    assert ground.one.ask("acquire", "write", name, 20000) == "granted"
    ours.tell("acquire", "shared_mutex", "shared", 1, 30000)
    ground.in_line(name, 2)
    assert ground.one.ask("acquire", "read", name, 20000) == "granted"
    assert ours.waits() and ground.one.ask("release", "write", name) == "released"
    assert ours.answer() == "granted"
    witness.enters("one", True)
    witness.enters("ours", True)
    assert not witness.blames()
    assert ours.ask("release") == "released" and ground.one.ask("release", "read", name) == "released"
    print("Curator's downgrade, a reader of ours waits: both read")


def our_downgrade(ground, theirs):
    """Ours keeps its place: Curator's writer waits, and so does its reader, which does not know the word."""
    name, ours = "ours-" + theirs, ground.ours("ours-" + theirs)
    witness = Witness(ground.client, name)
    assert ours.ask("acquire", "shared_mutex", "exclusive", 1, 0) == "granted"
    ground.two.tell("acquire", theirs, name, 30000)
    ground.in_line(name, 2)
    assert ours.ask("downgrade") == "downgraded"
    witness.enters("ours", True)
    assert ground.two.waits() and witness.line()[0] == ("ours", True)
    # Whoever went in now would be to blame for it, ours as well as theirs.
    witness.enters("two", False)
    assert witness.blames() == {"two"}
    witness.leaves("two")
    witness.leaves("ours")
    assert ours.ask("release") == "released" and ground.two.answer() == "granted"
    witness.enters("two", theirs == "read")
    assert not witness.blames()
    witness.enters("ours", False)
    assert "ours" in witness.blames(), "the witness does not see that ours has no place in line"
    assert ground.two.ask("release", theirs, name) == "released"
    print(f"our downgrade, Curator waits to {theirs}: it waits until ours has released")


def main():
    ground = Ground(*sys.argv[1:])
    try:
        permit_first(ground)
        permit_beside(ground)
        curators_downgrade(ground, ground.two, "theirs-alone")
        curators_downgrade(ground, ground.ours("theirs-and-ours"), "theirs-and-ours")
        curators_downgrade_and_readers(ground)
        for theirs in ("write", "read"):
            our_downgrade(ground, theirs)
    finally:
        ground.close()


if __name__ == "__main__":
    main()
