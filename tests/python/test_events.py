"""The events of the Python module, on a Redis server."""
import asyncio
import os
import threading
import time
import unittest

from support import CAP, Case
import holdfast

try:
    import uvloop
except ImportError:
    uvloop = None


class Events(Case):
    new_loop = staticmethod(asyncio.new_event_loop)

    def setUp(self):
        super().setUp()
        self.told = holdfast.open(self.url, events=True)
        self.addCleanup(self.told.close)

    def next(self, kind):
        """The next event of that kind."""
        for event in self.told.events(timeout=CAP):
            self.assertIsInstance(event, holdfast.Event)
            if event.kind == kind:
                return event
        self.fail(f"no event: {kind}")

    def lose(self, lease):
        self.other.break_lock(self.name, owner=lease.owner, now=True)
        self.assertRaises(holdfast.Lost, lease.renew)

    def test_a_lock(self):
        with self.told.lock(self.name) as lease:
            acquired = self.next("acquired")
            self.assertEqual((acquired.name, acquired.owner, acquired.token), (self.name, lease.owner, lease.token))
            self.assertIsNone(acquired.reason)
            self.assertTrue(0 <= acquired.took < CAP and acquired.dropped == 0, acquired)
        self.assertEqual(self.next("released").name, self.name)
        lease = self.told.lock(self.name).acquire()
        self.lose(lease)
        lost = self.next("lost")
        self.assertIsInstance(lost.reason, holdfast.Revoked)
        self.assertEqual((lost.owner, lost.text), (lease.owner, str(lost.reason)))

    def test_when_the_events_end(self):
        began = time.monotonic()
        self.assertEqual(list(self.told.events(timeout=0.2)), [])
        self.assertGreaterEqual(time.monotonic() - began, 0.199)
        lease = self.told.lock(self.name).acquire()
        found = []
        reader = threading.Thread(target=lambda: found.extend(self.told.events()))
        reader.start()
        self.told.close()
        reader.join(CAP)
        self.assertFalse(reader.is_alive())
        self.assertEqual([e.owner for e in found if e.kind == "lost"], [lease.owner])

    def test_without(self):
        with self.assertRaisesRegex(ValueError, "events=True"):
            self.one.events()

    def test_a_child_has_none(self):
        child = os.fork()
        if child == 0:
            try:
                next(self.told.events(timeout=CAP), None)
            except holdfast.Forked:
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_asyncio(self):
        async def main():
            kinds = []

            async def read():
                async for event in self.told.events_async():
                    kinds.append(event.kind)

            readers = [asyncio.create_task(read()) for _ in range(2)]
            async with self.told.lock(self.name):
                pass
            idle = [e async for e in self.one_more().events_async(timeout=0.05)]
            self.assertEqual(idle, [])
            await asyncio.to_thread(self.told.close)
            await asyncio.wait_for(asyncio.gather(*readers), CAP)
            self.assertEqual(sorted(kinds), ["acquired", "released"])

        loop = self.new_loop()
        try:
            loop.run_until_complete(asyncio.wait_for(main(), 3 * CAP))
        finally:
            loop.close()

    def one_more(self):
        client = holdfast.open(self.url, events=True)
        self.addCleanup(client.close)
        return client


@unittest.skipIf(uvloop is None, "there is no uvloop")
class OnUvloop(Events):
    new_loop = staticmethod(getattr(uvloop, "new_event_loop", None))


if __name__ == "__main__":
    unittest.main()
