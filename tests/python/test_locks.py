"""The blocking calls of the Python module, on a Redis server."""
import pickle
import threading
import time
import unittest

from support import BRIEF, Case, until
import holdfast


class Locks(Case):
    def test_with(self):
        lock = self.one.lock(self.name, ttl=10, wait=5, note="the test")
        with lock as lease:
            self.assertTrue(lease.valid)
            self.assertFalse(lease.lost)
            self.assertEqual((lease.state, lease.previous), ("held", "none"))
            self.assertTrue(0 < lease.left <= 10, lease.left)
            holder = self.other.inspect(self.name)["holders"][0]
            self.assertEqual((holder["owner"], holder["token"], holder["note"]), (lease.owner, lease.token, "the test"))
            self.assertEqual(self.other.list(self.name), [self.name])
            lease.check()
            lease.renew()
            first = lease.token
        self.assertFalse(self.held())
        self.assertEqual((lease.valid, lease.lost, lease.state), (False, False, "released"))
        self.assertRaises(holdfast.NotHeld, lease.check)
        with lock as lease:
            self.assertGreater(lease.token, first)
            self.assertEqual(lease.previous, "released")

    def test_left_by_another_thread(self):
        def in_a_thread(call):
            raised = []

            def run():
                try:
                    call()
                except BaseException as error:
                    raised.append(error)

            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
            return raised

        lock = self.one.lock(self.name)
        lock.__enter__()
        self.assertEqual(in_a_thread(lambda: lock.__exit__(None, None, None)), [])
        self.assertFalse(self.held())
        # Which of two it would be nobody can say.
        readers = self.one.shared_lock(self.name).read()
        readers.__enter__()
        readers.__enter__()
        raised, = in_a_thread(lambda: readers.__exit__(None, None, None))
        self.assertIn("lock.acquire() as lease", str(raised))
        readers.__exit__(None, None, None)
        self.assertEqual(len(self.other.inspect(self.name)["holders"]), 1)
        readers.__exit__(None, None, None)
        self.assertFalse(self.held())

    def test_an_exception_abandons(self):
        lock = self.one.lock(self.name)
        with self.assertRaises(ZeroDivisionError):
            with lock:
                1 // 0
        with lock as lease:
            self.assertEqual(lease.previous, "abandoned")
        lease = lock.acquire()
        del lease  # not released: given up
        with lock as lease:
            self.assertEqual(lease.previous, "abandoned")

    def test_another_holds_it(self):
        with self.one.lock(self.name):
            lock = self.other.lock(self.name, wait=BRIEF)
            began = time.monotonic()
            with self.assertRaises(TimeoutError) as caught:
                lock.acquire()
            self.assertGreaterEqual(time.monotonic() - began, BRIEF - 0.001)
            self.assertIs(type(caught.exception), holdfast.TimedOut)
            self.assertIn("another client still held the lock", str(caught.exception))
            self.assertRaises(holdfast.Contended, lock.acquire, 0)
            with self.assertRaises((holdfast.TimedOut, holdfast.InDoubt)) as brief:  # in doubt: no answer came so soon
                lock.acquire(0.0001)
            self.assertIsNot(type(brief.exception), holdfast.Contended)
            self.assertIsNone(lock.try_acquire())
        # The request in doubt may be granted, until it is withdrawn.
        tried = []
        until(lambda: tried.append(lock.try_acquire()) or tried[-1] is not None, "it is free again")
        with tried[-1] as lease:
            self.assertTrue(lease.valid)

    def test_a_waiter_is_granted(self):
        for where in ("main thread", "thread"):
            with self.subTest(where):
                lease = self.one.lock(self.name).acquire()
                got = []
                theirs = self.other.lock(self.name)

                def take():
                    with theirs:
                        got.append(where)

                def give():
                    until(lambda: self.waiters() == 1, "it waits")
                    lease.release()

                thread = threading.Thread(target=give if where == "main thread" else take)
                thread.start()
                (take if where == "main thread" else give)()
                thread.join()
                self.assertEqual(got, [where])

    def test_threads_exclude_each_other(self):
        lock, counter = self.one.lock(self.name, wait=60), [0]

        def count():
            for _ in range(20):
                with lock:
                    seen = counter[0]
                    time.sleep(0)
                    counter[0] = seen + 1

        threads = [threading.Thread(target=count) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(counter, [160])

    def test_loss(self):
        lock = self.one.lock(self.name)
        with self.assertRaises(holdfast.Revoked) as caught:
            with lock as lease:
                self.break_it(lease)
                self.assertRaises(holdfast.Lost, lease.check)
        self.assertEqual(caught.exception.code, 8)
        with self.assertRaises(ZeroDivisionError):  # not hidden by the loss
            with lock as lease:
                self.break_it(lease)
                1 // 0
        # A machine that stands still is late, not the module: of three tries one is in time.
        self.assertLess(min(self.seconds_until_a_thread_sees_the_loss(lock) for _ in range(3)), 0.05)

    def seconds_until_a_thread_sees_the_loss(self, lock):
        lease = lock.acquire()
        seen = []
        watcher = threading.Thread(target=lambda: seen.append((lease.wait_lost(), time.monotonic())))
        watcher.start()
        self.assertFalse(lease.wait_lost(0.05))
        self.break_it(lease)
        lost_at = time.monotonic()
        watcher.join()
        self.assertTrue(seen[0][0])
        self.assertRaises(holdfast.Lost, lease.release)
        return seen[0][1] - lost_at

    def break_it(self, lease):
        broken = self.other.break_lock(self.name, owner=lease.owner, token=lease.token, now=True, note="the test")
        self.assertTrue(broken[0]["broken"])
        until(lambda: self.lost(lease), "the loss is seen")
        self.assertEqual(self.other.inspect(self.name)["last_break"]["note"], "the test")

    def lost(self, lease):
        try:
            lease.renew()
        except holdfast.Lost:
            pass
        return lease.lost and lease.state == "lost"

    def test_options(self):
        for options in ({"ttl": 0.3, "renew": False}, {"max_hold": 0.1}):
            lease = self.one.lock(f"{self.name}/{len(options)}", **options).acquire()
            self.assertTrue(lease.wait_lost(10))
            self.assertRaises(holdfast.Lost, lease.release)
        lock = self.one.lock(self.name, min_hold=60)
        lock.acquire().release()
        self.assertIsNone(lock.try_acquire())
        self.assertGreater(self.other.inspect(self.name)["closed_for_ms"], 0)

    def test_operators(self):
        self.assertRaises(holdfast.NotHeld, self.other.break_lock, self.name)
        with self.one.lock(self.name) as lease:
            self.assertFalse(lease.asked)
            self.assertEqual(self.other.request_release(self.name)[0]["owner"], lease.owner)
            lease.renew()
            until(lambda: lease.asked, "the request is seen")
        self.assertEqual(self.other.examine()["schema"], "holdfast.doctor/1")


class Kinds(Case):
    def test_readers(self):
        prices = self.one.shared_lock(self.name, wait=5)
        with prices.read() as a, prices.read() as b:
            self.assertNotEqual(a.owner, b.owner)
            self.assertRaises(holdfast.Contended, prices.write(wait=0).acquire)
        with prices.write() as writer:
            self.assertIsNone(prices.read().try_acquire())
            writer.downgrade()
            with prices.read():
                pass

    def test_permits(self):
        gate = self.one.semaphore(self.name, 3, permits=2)
        with gate, self.other.semaphore(self.name, 3):
            self.assertIsNone(gate.try_acquire())

    def test_election(self):
        mine, theirs = self.one.election(self.name), self.other.election(self.name)
        self.assertIsNone(theirs.leader())
        with mine.lead("10.0.0.1:80") as term:
            leader = theirs.leader()
            self.assertEqual((leader.value, leader.owner, leader.token), ("10.0.0.1:80", term.owner, term.token))
            self.assertRaises(holdfast.WouldDeadlock, mine.lead("again", wait=0).acquire)
            self.assertRaises(TimeoutError, theirs.observe, leader, BRIEF)
            self.assertRaises(TimeoutError, theirs.lead("10.0.0.2:80", wait=BRIEF).acquire)
            self.assertRaises(holdfast.BadConfig, theirs.lead(200 * "x").acquire)
        self.assertIsNone(theirs.observe(leader, 10))

    def test_several(self):
        a, b = self.one.lock(self.name + "/a"), self.other.shared_lock(self.name + "/b").read()
        with b:
            with holdfast.acquire_all([a, b], wait=5) as lease:
                self.assertTrue(lease.valid and all(lease.tokens) and len(lease.tokens) == 2)
                self.assertIsNone(a.try_acquire())
                self.assertRaises(holdfast.NotSupported, lease.renew)
        with self.other.shared_lock(self.name + "/b").write():
            with self.assertRaises(TimeoutError):
                holdfast.acquire_all([a, b], wait=BRIEF).acquire()
        self.assertIsNotNone(a.try_acquire())
        self.assertRaises(holdfast.BadConfig, holdfast.acquire_all([]).acquire)


class Mistakes(Case):
    def test_errors(self):
        with self.assertRaises(ValueError) as caught:
            holdfast.open("redis://127.0.0.1:1/?tttl=3s&waitt=2")
        self.assertIs(type(caught.exception), holdfast.BadConfig)
        self.assertIn("tttl", str(caught.exception))
        self.assertIn("waitt", str(caught.exception))
        self.assertRaises(holdfast.BadName, self.one.lock, "")
        self.assertRaises(ValueError, self.one.lock, "a\0b")
        self.assertRaises(holdfast.BadConfig, self.one.lock, "a", ttl=0.001)
        self.assertRaises(holdfast.BadConfig, self.one.semaphore, "a", 2**32 + 1)
        self.assertRaises(holdfast.BadConfig, self.one.semaphore("a", 2, permits=2**32 + 1).acquire)
        self.assertRaises(ValueError, self.one.lock("a").acquire, -1)
        self.assertRaises(TypeError, self.one.lock, "a", max_holds=3)
        self.assertRaises(holdfast.Error, holdfast.open, "carrier-pigeon://x")
        with self.assertRaises(ConnectionError) as refused:
            holdfast.open("redis://127.0.0.1:1").lock("a").acquire()
        self.assertIs(type(refused.exception), holdfast.Unavailable)
        copy = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(copy), str(copy), copy.code), (holdfast.BadConfig, str(caught.exception), 14))
        for one in (self.one, self.one.lock("a"), self.one.lock(self.name).acquire()):
            self.assertRaises(TypeError, pickle.dumps, one)

    def test_every_exception_is_an_error(self):
        for name in holdfast.__all__:
            kind = getattr(holdfast, name)
            if isinstance(kind, type) and issubclass(kind, Exception):
                self.assertIsInstance(kind("words"), holdfast.Error)
                self.assertEqual(str(kind("words", 3)), "words")

    def test_closed(self):
        lock = self.one.lock(self.name)
        lease = lock.acquire()
        self.one.close()
        self.one.close()
        self.assertTrue(lease.lost)
        self.assertRaises(holdfast.Closed, lease.check)
        self.assertRaises(holdfast.Closed, lock.acquire)
        self.assertRaises(holdfast.Closed, self.one.lock, "a")
        self.assertRaises(holdfast.Closed, self.one.inspect, "a")
        until(lambda: not self.held(), "it is released")


if __name__ == "__main__":
    unittest.main()
