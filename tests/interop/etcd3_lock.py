"""python3-etcd3's own Lock and Holdfast on one name: what each does with the other's key.

Its lock is one key, at the name itself, which is created where there is none. Nobody stands in line there, and
it looks at no other key: it cannot wait for Holdfast. Holdfast can see it, and refuses.

usage: etcd3_lock.py HOLDFAST HOLDFAST_LAB
"""
import subprocess
import sys

import etcd3

from contention import Lab, wait_for

UNAVAILABLE, CONTENDED = 69, 75  # of `holdfast run`
STRANGER = "there is a key at the name itself"


class Holdfast:
    def __init__(self, program, port):
        self.begin = [program, "--url", f"etcd://127.0.0.1:{port}/locks?ttl=5s"]

    def run(self, *words):
        """The exit code and the words of a command that ends by itself."""
        done = subprocess.run([*self.begin, *words], capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stderr

    def start(self, name):
        """A command that works under the lock until end(), and says when it begins."""
        return subprocess.Popen([*self.begin, "run", name, "--", "sh", "-c", "echo begun; cat"], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def begun(process):
    assert process.stdout.readline() == "begun\n", process.communicate()


def end(process):
    process.communicate(timeout=60)
    return process.returncode


def refuses(holdfast, client):
    """Their key is there: whoever asks is told at once that this is no lock of Holdfast's."""
    theirs = client.lock("N", ttl=60)
    # Without a time to wait: Debian's version fails with a TypeError when it has to.
    assert theirs.acquire(timeout=0)
    for words in (["run", "-n", "N", "--", "true"], ["run", "N", "--", "true"], ["inspect", "N"], ["break", "--force", "N"]):
        code, said = holdfast.run(*words)
        assert code == UNAVAILABLE and STRANGER in said, (words, code, said)
    assert theirs.is_acquired() and theirs.release()
    assert holdfast.run("run", "-n", "N", "--", "true")[0] == 0
    print("theirs, then ours: refused")


def is_not_seen(holdfast, client):
    """Our key is there: they take the lock beside it. Who waits in our line does not make a third."""
    ours = holdfast.start("N")
    begun(ours)
    waiter = holdfast.start("N")
    wait_for(lambda: len(list(client.get_prefix("/locks/N/"))) == 2, "a waiter in line", pause=0.05)
    theirs = client.lock("N", ttl=60)
    assert theirs.acquire(timeout=0), "it has waited for ours: the README says that it cannot"
    assert ours.poll() is None
    assert end(ours) == 0
    said = waiter.communicate(timeout=60)
    assert waiter.returncode == UNAVAILABLE and STRANGER in said[1] and not said[0], (waiter.returncode, said)
    assert theirs.is_acquired() and theirs.release()
    assert not list(client.get_prefix("/locks/N")), "the waiter has left its key"
    print("ours, then theirs: two holders, as they cannot see ours; no third")


def is_waited_for(holdfast, client):
    """Named as a key in our line, theirs is a holder as any other, for us alone."""
    theirs = client.lock("N/theirs", ttl=60)
    assert theirs.acquire(timeout=0)
    assert holdfast.run("run", "-n", "N", "--", "true")[0] == CONTENDED
    waiter = holdfast.start("N")
    wait_for(lambda: len(list(client.get_prefix("/locks/N/"))) == 2, "a waiter in line", pause=0.05)
    assert theirs.release()
    begun(waiter)
    assert theirs.acquire(timeout=0), "it has waited for ours: the README says that it cannot"
    assert end(waiter) == 0 and theirs.release()
    print("theirs in our line: waited for, and they take it beside ours")


def main():
    program, lab = sys.argv[1:]
    etcd = Lab(lab, "etcd")
    try:
        client = etcd3.client(port=etcd.ports[0])
        holdfast = Holdfast(program, etcd.ports[0])
        for part in (refuses, is_not_seen, is_waited_for):
            part(holdfast, client)
    finally:
        etcd.close()


if __name__ == "__main__":
    main()
