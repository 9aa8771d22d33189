"""Locks: what can be acquired."""
import asyncio
import threading
from ctypes import byref, c_void_p, sizeof
from typing import Any, Dict, List, Optional, Sequence, Union

from . import _library as c
from ._errors import Contended, check, error_of
from ._lease import Lease
from ._library import library
from ._queue import Start, in_main_thread, wait, wait_async


class Unset:
    """The default of an argument for which None has a meaning."""


UNSET = Unset()
Wait = Union[float, None, Unset]


class Lock:
    """A name at a server, which any number of threads and tasks may acquire; made by Client. Each `with` and `async with` is an
    acquisition of its own, and gives its Lease."""

    def __init__(self, owner: Any, name: str, handle: Any, wait: Optional[float], shared: bool = False, permits: int = 1,
                 note: Optional[str] = None, parts: int = 1) -> None:
        self.name = name
        self.wait = wait
        self._owner = owner  # has the handle, or the client
        self._handle = handle
        self._shared, self._permits, self._parts = shared, permits, parts
        self._note = c.text(note)
        self._once = self._options(0)
        self._held: Dict[Any, List[Lease]] = {}

    def __repr__(self) -> str:
        return f"<holdfast.Lock {self.name!r}>"

    def __reduce__(self) -> Any:
        raise TypeError("a holdfast.Lock belongs to its process: open a client in each")

    def _options(self, wait_ms: int) -> "c.AcquireOptions":
        return c.AcquireOptions(shared=int(self._shared), permits=c.unsigned(self._permits), wait=wait_ms, note=self._note)

    def _milliseconds(self, wait_for: Wait) -> int:
        return c.milliseconds(self.wait if isinstance(wait_for, Unset) else wait_for)

    def acquire(self, wait: Wait = UNSET) -> Lease:
        """Waits `wait` seconds at most; None: for ever; 0: one attempt. Raises TimedOut, or Contended, which is a TimedOut, if
        another client holds the lock."""
        lease = self._lease()
        self._acquire(lease, wait)
        return lease

    def _lease(self) -> Lease:
        return Lease(self.name, self._owner, self._parts)

    def _acquire(self, lease: Lease, wait_for: Wait) -> None:
        """Into a lease that is there already: an interrupt that follows finds an object that releases it."""
        milliseconds, error = self._milliseconds(wait_for), c.ErrorInfo()
        main = in_main_thread()
        options = self._once if main else self._options(milliseconds)
        code = library.hf_acquire(self._handle, byref(options), byref(lease._handle), byref(error))
        if code == c.CONTENDED and main and milliseconds != 0:
            options = self._options(milliseconds)
            wait(self._start(options), lease._handle)
        else:
            check(code, error)

    def _start(self, options: "c.AcquireOptions") -> Start:
        return lambda queue, call, error: int(
            library.hf_acquire_start(self._handle, byref(options), queue, call, error))

    def try_acquire(self) -> Optional[Lease]:
        """One attempt. None: another client holds the lock."""
        try:
            return self.acquire(0)
        except Contended:
            return None

    async def acquire_async(self, wait: Wait = UNSET) -> Lease:
        """As acquire, in asyncio."""
        lease = self._lease()
        await wait_async(self._start(self._options(self._milliseconds(wait))), lease._handle)
        return lease

    def __enter__(self) -> Lease:
        lease, who = self._lease(), threading.get_ident()
        self._held.setdefault(who, []).append(lease)
        try:
            self._acquire(lease, self.wait)
            return lease
        except BaseException:
            self._leave(who)
            raise

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self._leave(threading.get_ident()).__exit__(kind, value, traceback)

    async def __aenter__(self) -> Lease:
        lease = await self.acquire_async()
        self._held.setdefault(asyncio.current_task(), []).append(lease)
        return lease

    async def __aexit__(self, kind: Any, value: Any, traceback: Any) -> None:
        await self._leave(asyncio.current_task()).__aexit__(kind, value, traceback)

    def _leave(self, who: Any) -> Lease:
        if who not in self._held:  # a framework may leave on another thread, or in another task, than it entered
            others = [other for other, leases in self._held.items() for _ in leases]
            if len(others) != 1:
                raise RuntimeError(f"`with` on {self!r} is left by a thread or task that did not enter it, while {len(others)} "
                                   "hold it: use `with lock.acquire() as lease`, which any thread may leave")
            who = others[0]
        leases = self._held[who]
        lease = leases.pop()
        if not leases:
            del self._held[who]
        return lease


class Handle:
    """Owns an hf_lock, and keeps its client."""

    def __init__(self, keeps: Any) -> None:
        self.pointer = c_void_p()
        self.keeps = keeps

    def __del__(self, free: Any = library.hf_lock_free) -> None:
        free(self.pointer)
        self.pointer = c_void_p()


class SharedLock:
    """One writer, or any number of readers; made by Client.shared_lock."""

    def __init__(self, owner: Handle, name: str, wait: Optional[float], note: Optional[str]) -> None:
        self.name = name
        self._owner, self._wait, self._note = owner, wait, note

    def _lock(self, shared: bool, wait: Wait) -> Lock:
        limit = self._wait if isinstance(wait, Unset) else wait
        return Lock(self._owner, self.name, self._owner.pointer, limit, shared=shared, note=self._note)

    def read(self, wait: Wait = UNSET) -> Lock:
        """To be acquired beside other readers."""
        return self._lock(True, wait)

    def write(self, wait: Wait = UNSET) -> Lock:
        """To be acquired by one writer, which may `downgrade` its lease."""
        return self._lock(False, wait)


def acquire_all(locks: Sequence[Lock], wait: Optional[float] = None) -> Lock:
    """Several locks as one, all or none, in an order that is the same for all callers, so that no two wait for each other:
    `with holdfast.acquire_all([client.lock("a"), client.lock("b")], wait=5) as lease`. Sends nothing yet."""
    parts = (c.Part * len(locks))()
    for part, lock in zip(parts, locks):
        part.size, part.shared, part.permits = sizeof(c.Part), int(lock._shared), c.unsigned(lock._permits)
        part.lock = lock._handle.value
    handle, error = Handle(list(locks)), c.ErrorInfo()
    code = library.hf_lock_all(parts, len(locks), byref(handle.pointer), byref(error))
    if code:
        raise error_of(error)
    return Lock(handle, ", ".join(lock.name for lock in locks), handle.pointer, wait, parts=len(locks))
