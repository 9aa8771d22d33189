"""What every Python client of another library does while it holds: the witness, and a counter in two steps."""
import os
import sys

import redis


class Witness:
    """A link that only one process can make, and a counter that is read and written in two steps."""

    def __init__(self, store_port, folder):
        self.store = redis.Redis(port=store_port)
        self.store_port, self.folder = store_port, folder
        self.path = os.path.join(folder, "witness")

    def enter(self):
        """Makes the witness; False when somebody who lives has made it.

        A symbolic link whose text is the process: exclusive like O_CREAT|O_EXCL, and never there without
        its text, whenever its maker is killed.
        """
        me = str(os.getpid())
        try:
            os.symlink(me, self.path)
            return True
        except FileExistsError:
            pass
        try:
            os.kill(int(os.readlink(self.path)), 0)
            return False
        except FileNotFoundError:
            return False
        except ProcessLookupError:
            pass
        try:
            os.unlink(self.path)
            os.symlink(me, self.path)
            return True
        except (FileNotFoundError, FileExistsError):
            return False

    def work(self):
        if not self.enter():
            self.store.incr("overlaps")
        n = int(self.store.get("counter") or 0)
        # One step of the store, so that a kill cannot fall between the two.
        self.store.eval("redis.call('SET','counter',ARGV[1]) redis.call('INCR','done') "
                        "redis.call('INCR','foreign')", 0, n + 1)
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass


def arguments():
    """SERVERS STORE-PORT NAME FOLDER ROUNDS, as tests/interop/contention.py gives them."""
    servers, store_port, name, folder, rounds = sys.argv[1:]
    return servers, Witness(int(store_port), folder), name, int(rounds)
