"""Calls that do not block, and what waits for them: a thread, or an asyncio event loop.

Each thread and each loop has a queue of its own, so that no thread takes the answers of another. Python's main thread
waits for the queue's descriptor instead of inside the library, because only there a signal's handler, such as that of
^C, can run.
"""
import asyncio
import os
import select
import threading
import time
import weakref
from ctypes import byref, c_uint64, c_void_p
from typing import Any, Callable, Dict, Optional

from . import _library as c
from ._errors import Error, error_of
from ._library import library

# Gets the lease's address, or what failed, or the JSON of a question.
Answered = Callable[[Optional[int], Optional[Error], str], None]
Start = Callable[[Any, Any, Any], int]


class Queue:
    """Of one thread."""

    def __init__(self) -> None:
        self._handle = c_void_p()
        self._waiting: Dict[int, Answered] = {}
        self._event = c.Event()
        error = c.ErrorInfo()
        if library.hf_queue_new(byref(self._handle), byref(error)):
            raise error_of(error)
        self.fd: int = library.hf_queue_fd(self._handle)

    def __del__(self, free: Any = library.hf_queue_free) -> None:
        free(self._handle)
        self._handle = c_void_p()

    def start(self, begin: Start, answered: Answered, call: Any) -> None:
        """`begin(queue, call, error)` is a function of holdfast.h. Writes the number to `call`."""
        error = c.ErrorInfo()
        if begin(self._handle, byref(call), byref(error)):
            raise error_of(error)
        self._waiting[call.value] = answered

    def cancel(self, call: int) -> None:
        """The answer comes in any case. What the call was granted is released, even if nobody takes the answer."""
        self._waiting.pop(call, None)
        library.hf_cancel(self._handle, call)

    def take(self) -> None:
        """Passes on the answers that are there."""
        event = self._event
        while library.hf_queue_next(self._handle, byref(event)):
            answered, json = self._waiting.pop(event.call, None), c.taken(event.json)
            if answered is None:
                library.hf_lease_free(event.lease)
            else:
                answered(event.lease, error_of(event.error) if event.error.code else None, json)

    def interrupted(self, call: int, taken: Optional[int]) -> None:
        """An exception of a signal's handler ended `take`, maybe between an answer and the call that waits for it."""
        if call and self._event.call == call and self._event.lease not in (None, taken):
            library.hf_lease_free(self._event.lease)
        self.cancel(call)


_of_thread = threading.local()
_of_loop: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Queue]" = weakref.WeakKeyDictionary()


def _after_fork() -> None:
    """The queues are the parent's."""
    global _of_thread, _of_loop
    _of_thread = threading.local()
    _of_loop = weakref.WeakKeyDictionary()


os.register_at_fork(after_in_child=_after_fork)


def in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


class _Result:
    """What a call was answered."""

    def __init__(self, lease: Any) -> None:
        self.there = False
        self.lease = lease
        self.error: Optional[Error] = None
        self.json = ""

    def __call__(self, lease: Optional[int], error: Optional[Error], json: str) -> None:
        self.lease.value = lease
        self.json = json
        self.there, self.error = True, error


def wait(begin: Start, lease: Any = None, timeout: Optional[float] = None) -> Optional[str]:
    """Blocks until the call is answered, writes its lease, returns the JSON of a question, and raises its error. None: the
    timeout came first. Then, and when a signal's handler raises, the call is cancelled."""
    queue: Optional[Queue] = getattr(_of_thread, "queue", None)
    if queue is None:
        queue = _of_thread.queue = Queue()
    result, call = _Result(c_void_p() if lease is None else lease), c_uint64()
    end = None if timeout is None else time.monotonic() + timeout
    poll = select.poll()
    poll.register(queue.fd, select.POLLIN)
    try:
        queue.start(begin, result, call)
        while not result.there:
            left = None if end is None else max(0.0, end - time.monotonic())
            if not poll.poll(None if left is None else left * 1000) and left == 0:
                queue.cancel(call.value)
                return None
            queue.take()
    except BaseException:
        queue.interrupted(call.value, result.lease.value)
        raise
    if result.error is not None:
        raise result.error
    return result.json


async def wait_async(begin: Start, lease: Any = None) -> str:
    """Writes the lease of the answer and returns its JSON, or raises its error. Cancellation of the task cancels the call."""
    loop = asyncio.get_running_loop()
    queue = _of_loop.get(loop)
    if queue is None:
        queue = _of_loop[loop] = Queue()
        loop.add_reader(queue.fd, queue.take)
    future: "asyncio.Future[str]" = loop.create_future()

    def answered(address: Optional[int], error: Optional[Error], json: str) -> None:
        if future.done():  # cancelled
            library.hf_lease_free(address)
        elif error is not None:
            future.set_exception(error)
        else:
            if lease is not None:
                lease.value = address
            future.set_result(json)

    call = c_uint64()
    queue.start(begin, answered, call)
    try:
        return await future
    except (asyncio.CancelledError, GeneratorExit):
        queue.cancel(call.value)
        if lease is not None and lease.value:  # it was answered in this very turn of the loop
            library.hf_lease_free(lease.value)
            lease.value = None
        raise
