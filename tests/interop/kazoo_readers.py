"""kazoo 2.8's ReadLock and WriteLock, by themselves, wait for each other for ever. Holdfast is not part of it.

A reader is to wait for the writers ahead of it. Up to 2.8 it waits for the last writer in line, also one that came
later; and that one waits for the reader. So the contention with Holdfast has no readers of kazoo's.

usage: kazoo_readers.py HOLDFAST_LAB
"""
import sys
import threading

import kazoo.version
from kazoo.client import KazooClient
from kazoo.exceptions import CancelledError, LockTimeout

from contention import Lab, wait_for

MENDED = (2, 9)


class Asking(threading.Thread):
    """Waits for a lock, until it is cancelled."""

    def __init__(self, lock):
        super().__init__(daemon=True)
        self.lock, self.held = lock, False
        self.start()

    def run(self):
        try:
            self.held = self.lock.acquire(timeout=30)
        except (CancelledError, LockTimeout):
            pass

    def waits_for(self, node):
        return self.lock.node and self.lock._get_predecessor(self.lock.node) == node


def main():
    lab = Lab(sys.argv[1], "zookeeper")
    client = KazooClient(hosts=f"127.0.0.1:{lab.ports[0]}", timeout=10.0)
    try:
        client.start(timeout=30)
        first = client.WriteLock("/readers", "first")
        assert first.acquire(timeout=30)
        reader = Asking(client.ReadLock("/readers", "reader"))
        wait_for(lambda: reader.waits_for(first.node), "the reader to be in line behind the first writer")
        second = Asking(client.WriteLock("/readers", "second"))
        wait_for(lambda: second.waits_for(reader.lock.node), "the second writer to be in line behind the reader")
        assert first.release()
        if tuple(map(int, kazoo.version.__version__.split(".")[:2])) >= MENDED:
            wait_for(lambda: reader.held, "the reader to be let in")
            print("this kazoo's reader waits for those ahead of it only: let the contention have readers")
            return
        # Nobody holds; the two that are left wait for each other.
        assert len(client.get_children("/readers")) == 2
        assert reader.waits_for(second.lock.node) and second.waits_for(reader.lock.node)
        reader.join(1)
        assert not reader.held and not second.held and reader.is_alive() and second.is_alive()
        print("a reader and a younger writer of kazoo", kazoo.version.__version__, "wait for each other")
        for one in (reader, second):
            one.lock.cancel()
            one.join(30)
            assert not one.is_alive()
    finally:
        client.stop()
        lab.close()


if __name__ == "__main__":
    main()
