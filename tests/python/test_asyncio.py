"""The asyncio calls of the Python module, on a Redis server."""
import asyncio
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from support import BRIEF, CAP, Case, until
import holdfast

try:
    import uvloop
except ImportError:
    uvloop = None
WAITERS = 1000


class Asyncio(Case):
    new_loop = staticmethod(asyncio.new_event_loop)

    def run_it(self, coroutine):
        loop = self.new_loop()
        try:
            return loop.run_until_complete(asyncio.wait_for(coroutine, 3 * CAP))
        finally:
            # close() does not wait for the threads of to_thread, and the next test counts threads.
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    def test_with(self):
        async def main():
            lock = self.one.lock(self.name, wait=5)
            async with lock as lease:
                self.assertTrue(lease.valid and lease.token)
                await lease.renew_async()
                with self.assertRaises(TimeoutError):
                    async with self.other.lock(self.name, wait=BRIEF):
                        pass
                with self.assertRaises(holdfast.Contended):
                    await lock.acquire_async(0)
            self.assertFalse(self.held())
            with self.assertRaises(ZeroDivisionError):
                async with lock:
                    1 // 0
            async with lock as lease:
                self.assertEqual(lease.previous, "abandoned")
            async with holdfast.acquire_all([lock, self.other.lock(self.name + "/b")]) as both:
                self.assertEqual(len(both.tokens), 2)
            async with self.one.shared_lock(self.name).write() as writer:
                await writer.downgrade_async()
                async with self.other.shared_lock(self.name).read():
                    pass
            async with self.one.election(self.name).lead("me"):
                self.assertEqual((await asyncio.to_thread(self.other.election(self.name).leader)).value, "me")
            with self.assertRaises(ConnectionError):
                await holdfast.open("redis://127.0.0.1:1").lock("a").acquire_async()

        self.run_it(main())

    def test_a_thousand_waiters_on_one_thread(self):
        async def main():
            lock, tokens = self.one.lock(self.name), []

            async def one():
                async with lock as lease:
                    tokens.append(lease.token)

            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
            before = threading.active_count()
            async with lock:
                tasks = [asyncio.ensure_future(one()) for _ in range(WAITERS)]
                end = time.monotonic() + CAP
                while (await asyncio.to_thread(self.waiters)) < WAITERS:
                    self.assertLess(time.monotonic(), end)
            await asyncio.gather(*tasks)
            self.assertEqual(len(tokens), WAITERS)
            self.assertEqual(tokens, sorted(tokens))
            self.assertLessEqual(threading.active_count(), before + 1)  # that of to_thread

        self.run_it(main())

    def test_cancellation(self):
        async def main():
            lock = self.one.lock(self.name)
            async with lock:
                task = asyncio.ensure_future(self.other.lock(self.name).acquire_async())
                await asyncio.to_thread(until, lambda: self.waiters() == 1, "it waits")
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                await asyncio.to_thread(until, lambda: self.waiters() == 0, "it waits no more")
                closed = self.other.lock(self.name).acquire_async()
                closed.send(None)
                await asyncio.to_thread(until, lambda: self.waiters() == 1, "the coroutine waits")
                closed.close()
                await asyncio.to_thread(until, lambda: self.waiters() == 0, "it waits no more")
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(self.other.lock(self.name).acquire_async(), 0.05)
            # Cancelled at any moment of a grant, it leaves nothing held.
            for delay in range(40):
                task = asyncio.ensure_future(lock.acquire_async())
                for _ in range(delay % 8):
                    await asyncio.sleep(0)
                if delay % 3 == 0:
                    await asyncio.sleep(0.0002)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                del task
                async with self.other.lock(self.name, wait=5):
                    pass

        self.run_it(main())
        until(lambda: not self.held(), "nothing is held")

    def test_cancelled_in_the_turn_of_the_grant(self):
        async def main():
            lock = self.one.lock(self.name)
            task = asyncio.ensure_future(lock.acquire_async())
            await asyncio.sleep(0)
            until(self.held, "it is held")  # the loop stands still, and takes the grant in its next turn
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(task.cancel)
            await asyncio.wait([task])
            return task

        task = self.run_it(main())  # which keeps the exception, and so the frames
        if not task.cancelled():  # uvloop may pass the grant on before the cancellation
            task.result().release()
        until(lambda: not self.held(), "it is given back")

    def test_loss(self):
        async def main():
            lock, late = self.one.lock(self.name), []
            for _ in range(3):  # of which one is in time, though the machine may stand still
                late.append(await seconds_until_seen(lock))
            self.assertLess(min(late), 0.05)
            async with lock as lease:
                watch = asyncio.ensure_future(lease.wait_lost_async())
                await asyncio.sleep(0)
            self.assertFalse(await watch)

        async def seconds_until_seen(lock):
            lease = await lock.acquire_async()
            watch = asyncio.ensure_future(lease.wait_lost_async())
            await asyncio.sleep(0)
            await asyncio.to_thread(self.other.break_lock, self.name, now=True)
            with self.assertRaises(holdfast.Lost):
                await lease.renew_async()
            began = time.monotonic()
            self.assertTrue(await watch)
            took = time.monotonic() - began
            with self.assertRaises(holdfast.Revoked):
                async with lease:
                    pass
            return took

        self.run_it(main())

    def test_questions(self):
        async def main():
            election = self.one.election(self.name)
            self.assertIsNone(await election.leader_async())
            before = threading.active_count()
            waiting = [asyncio.create_task(election.observe_async(None)) for _ in range(20)]
            with self.assertRaises(TimeoutError):
                await election.observe_async(None, BRIEF)
            waiting[0].cancel()
            async with self.other.election(self.name).lead("10.0.0.1:80") as term:
                with self.assertRaises(asyncio.CancelledError):
                    await waiting[0]
                for leader in await asyncio.gather(*waiting[1:]):
                    self.assertEqual((leader.owner, leader.value), (term.owner, "10.0.0.1:80"))
                self.assertEqual(threading.active_count(), before)
                found = await self.one.inspect_async(self.name)
                self.assertEqual(found["holders"][0]["owner"], term.owner)
                self.assertEqual(await self.one.list_async(self.name), [self.name])
                self.assertEqual(len(await self.one.request_release_async(self.name)), 1)
                self.assertIn("verdict", await self.one.examine_async())
            self.assertIsNone(await election.observe_async(leader))
            with self.assertRaises(holdfast.NotHeld):
                await self.one.break_lock_async(self.name)
            lease = await self.one.lock(self.name).acquire_async()
            self.assertEqual(len(await self.other.break_lock_async(self.name, now=True, note="the test")), 1)
            with self.assertRaises(holdfast.Lost):
                await lease.renew_async()

        self.run_it(main())

    def test_loops_in_threads(self):
        lock, tokens = self.one.lock(self.name), []

        async def one():
            async with lock as lease:
                tokens.append(lease.token)

        async def some():
            await asyncio.gather(*(one() for _ in range(30)))

        threads = [threading.Thread(target=self.run_it, args=(some(),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(tokens)), 120)

    def test_a_loop_that_is_closed_gives_up(self):
        loop = self.new_loop()
        lock = self.one.lock(self.name)
        lease = lock.acquire()
        task = loop.create_task(lock.acquire_async())
        loop.call_later(0.05, loop.stop)
        loop.run_forever()
        until(lambda: self.waiters() == 1, "it waits")
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.close()
        until(lambda: self.waiters() == 0, "it waits no more")
        lease.release()


if uvloop is not None:
    class Uvloop(Asyncio):
        new_loop = staticmethod(uvloop.new_event_loop)


if __name__ == "__main__":
    unittest.main()
