"""What a client reports for an operator's log: a queue of its own, and those who read it: a thread, or an asyncio loop."""
import asyncio
import os
import select
import time
from ctypes import byref, c_void_p
from typing import Any, AsyncIterator, Callable, Iterator, NamedTuple, Optional, Tuple

from . import _library as c
from ._errors import Error, Forked, error_of, made
from ._library import library

_KINDS = ("unknown", "waiting", "acquired", "at_risk", "recovered", "lost", "in_doubt", "released", "warning", "unreachable",
          "reachable", "moved")
_STEP = 0.5  # seconds: how soon ^C and the end of the client are noticed


class Event(NamedTuple):
    """One change that belongs in a log. Times are in seconds."""

    kind: str
    """"waiting", "acquired", "at_risk", "recovered", "lost", "in_doubt", "released", "warning", "unreachable", "reachable"
    or "moved" (to other servers). A later library may have others."""
    name: str
    """Of the lock; empty: about the client."""
    owner: str
    """Of the acquisition."""
    token: int
    took: float
    """With "acquired": how long the call lasted."""
    left: float
    """With "at_risk": for how long the lease is still valid."""
    reason: Optional[Error]
    """Of a loss, a risk or a doubt."""
    text: str
    """Of a warning or a move, or why, in words."""
    dropped: int
    """How many events before this one were dropped, because nobody took them."""


class Events:
    """Of one client. Several readers share the events: each gets some."""

    def __init__(self) -> None:
        self.handle = c_void_p()
        self._pid = os.getpid()
        error = c.ErrorInfo()
        if library.hf_queue_new(byref(self.handle), byref(error)):
            raise error_of(error)
        self._fd: int = library.hf_queue_fd(self.handle)

    def __del__(self, free: Any = library.hf_queue_free) -> None:
        free(self.handle)
        self.handle = c_void_p()

    def take(self) -> Optional[Event]:
        """The oldest one, or None. Does not block."""
        if self._pid != os.getpid():
            raise Forked("the events are those of the parent's client\n  Open a client in this process.", 17)
        report = c.Report()
        if not library.hf_queue_report(self.handle, byref(report)):
            return None
        kind = _KINDS[report.kind] if report.kind < len(_KINDS) else f"kind {report.kind}"
        text = report.text.decode(errors="replace")
        reason = made(report.reason, report.native, text) if report.reason else None
        return Event(kind, report.name.decode(errors="replace"), report.owner.decode(errors="replace"), report.token,
                     report.took / 1000, report.left / 1000, reason, text, report.dropped)

    def _step(self, end: float, closed: Callable[[], bool]) -> Tuple[Optional[Event], float]:
        """The next event, or for how long to wait for one; 0: no more."""
        over = closed()  # before the look: what came until then is passed on
        return self.take(), 0 if over else max(0.0, min(_STEP, end - time.monotonic()))

    def read(self, timeout: Optional[float], closed: Callable[[], bool]) -> Iterator[Event]:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        end = _end(timeout)
        while True:
            event, pause = self._step(end, closed)
            if event is not None:
                yield event
                end = _end(timeout)
            elif pause:
                poll.poll(pause * 1000)
            else:
                return

    async def read_async(self, timeout: Optional[float], closed: Callable[[], bool]) -> AsyncIterator[Event]:
        loop = asyncio.get_running_loop()
        end = _end(timeout)
        while True:
            event, pause = self._step(end, closed)
            if event is not None:
                yield event
                end = _end(timeout)
            elif pause:
                await self._readable(loop, pause)
            else:
                return

    async def _readable(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        # A descriptor of its own, since a loop has one reader for each.
        fd = os.dup(self._fd)
        readable = loop.create_future()
        timer = loop.call_later(seconds, _set, readable)
        loop.add_reader(fd, _set, readable)
        try:
            await readable
        finally:
            loop.remove_reader(fd)
            timer.cancel()
            os.close(fd)


def _end(timeout: Optional[float]) -> float:
    return float("inf") if timeout is None else time.monotonic() + timeout


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
