"""Signals, forks and the end of the interpreter."""
import multiprocessing
import os
import signal
import sys
import threading
import time
import unittest

from support import Case, until
import holdfast


def add(url, name, path, rounds):
    """Of a process of its own: counts in a file, read and written in two steps."""
    with holdfast.open(url) as client:
        for _ in range(rounds):
            with client.lock(name, wait=60):
                with open(path) as file:
                    seen = int(file.read())
                with open(path, "w") as file:
                    file.write(str(seen + 1))


class Signals(Case):
    def test_interrupt_of_a_wait(self):
        with self.one.lock(self.name):
            def interrupt():
                until(lambda: self.waiters() == 1, "it waits")
                os.kill(os.getpid(), signal.SIGINT)

            thread = threading.Thread(target=interrupt)
            thread.start()
            with self.assertRaises(KeyboardInterrupt):
                self.one.lock(self.name).acquire()
            thread.join()
            until(lambda: self.waiters() == 0, "it waits no more")
        self.assertIsNotNone(self.other.lock(self.name).try_acquire())

    def test_a_handler_that_returns_does_not_end_a_wait(self):
        seen = []
        before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        lease = self.one.lock(self.name).acquire()

        def work():
            until(lambda: self.waiters() == 1, "it waits")
            os.kill(os.getpid(), signal.SIGUSR1)
            until(lambda: seen, "the handler has run")
            lease.release()

        thread = threading.Thread(target=work)
        thread.start()
        with self.one.lock(self.name):
            thread.join()
        self.assertEqual(seen, [1])

    def test_interrupts_at_any_moment(self):
        """Nothing stays held or queued."""
        class Alarm(Exception):
            pass

        armed, rung = [], 0

        def ring(*_):
            if armed:
                raise Alarm

        before = signal.signal(signal.SIGALRM, ring)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        # Python itself drops an exception that reaches the end of an object.
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
        self.addCleanup(setattr, sys, "unraisablehook", hook)
        for n in range(300):
            try:
                armed.append(1)
                signal.setitimer(signal.ITIMER_REAL, 0.00001 + (n % 60) * 0.00002, 0.05)
                while True:
                    with self.one.lock(self.name):
                        pass
            except Alarm:
                rung += 1
            finally:
                armed.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.assertEqual(rung, 300)
        until(lambda: not self.held() and self.waiters() == 0, "nothing is held")


class Processes(Case):
    def test_fork(self):
        lock = self.one.lock(self.name)
        with lock as lease:
            child = os.fork()
            if child == 0:
                os._exit(self.in_child(lock, lease))
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            lease.renew()
            lease.check()

    def in_child(self, lock, lease):
        """Each exit code is a place."""
        for place, call in enumerate((lock.acquire, lease.renew, lease.release, lambda: self.one.lock("a"),
                                      lambda: self.one.inspect("a"), lease.wait_lost), 1):
            try:
                call()
                return place
            except holdfast.Forked:
                pass
        self.one.close()
        with holdfast.open(self.url) as client, client.lock(self.name + "/child"):
            return 100 if client.lock(self.name).try_acquire() else 0

    def test_the_end_of_a_child_leaves_the_parents_lease(self):
        text = """
import os
client = holdfast.open(url)
with client.lock(name) as lease:
    if os.fork() == 0:
        sys.exit()  # runs what atexit has, and collects the parent's objects
    assert os.wait()[1] == 0
    lease.renew()
    lease.check()
print(lease.state)
"""
        self.assertEqual(self.ends(self.program(text)), "released\n")

    def test_multiprocessing(self):
        for method in ("fork", "spawn"):
            with self.subTest(method):
                path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"{self.name}-{os.getpid()}-{method}")
                with open(path, "w") as file:
                    file.write("0")
                self.addCleanup(os.remove, path)
                self.one.lock(self.name).acquire().release()  # the parent has used its own
                context = multiprocessing.get_context(method)
                workers = [context.Process(target=add, args=(self.url, self.name, path, 10)) for _ in range(3)]
                for worker in workers:
                    worker.start()
                for worker in workers:
                    worker.join()
                self.assertEqual([worker.exitcode for worker in workers], [0, 0, 0])
                with open(path) as file:
                    self.assertEqual(file.read(), "30")

    def test_exit_releases_as_abandoned(self):
        self.ends(self.program("client = holdfast.open(url)\nlease = client.lock(name).acquire()\n"))
        self.assertFalse(self.held())
        with self.one.lock(self.name) as lease:
            self.assertEqual(lease.previous, "abandoned")

    def test_a_killed_process_leaves_it_to_the_ttl(self):
        self.ends(self.program("import os\nlease = holdfast.open(url).lock(name, ttl=3).acquire()\nos._exit(0)\n"))
        self.assertTrue(self.held())
        with self.one.lock(self.name) as lease:
            self.assertEqual(lease.previous, "crashed")

    def test_exit_while_others_wait(self):
        """Daemon threads and tasks that wait do not keep the interpreter, and do not crash it."""
        text = """
import asyncio, threading
client = holdfast.open(url)
for _ in range(4):
    threading.Thread(target=lambda: client.lock(name).acquire(), daemon=True).start()
async def main():
    for _ in range(20):
        asyncio.ensure_future(client.lock(name).acquire_async())
    while len(client.inspect(name)["waiters"]) < 24:
        await asyncio.sleep(0)
asyncio.run(main())
print("done")
"""
        with self.one.lock(self.name):
            began = time.monotonic()
            process = self.program(text)
            output, errors = process.communicate(timeout=60)
            self.assertEqual((process.returncode, output), (0, "done\n"), errors)
            self.assertEqual(errors, "")
            self.assertLess(time.monotonic() - began, 20)
            until(lambda: self.waiters() == 0, "nobody waits")


if __name__ == "__main__":
    unittest.main()
