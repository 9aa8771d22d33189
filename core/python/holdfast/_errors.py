"""The conditions of holdfast.h as exceptions, each below the built-in one that Python programs expect."""
import threading
from typing import Any, Dict, Type

from . import _library as c


class Error(Exception):
    """Base of all. `code` is the number of holdfast.h, `native` that of the server or the library, for a log."""

    def __init__(self, message: str = "", code: int = 101, native: int = 0) -> None:
        super().__init__(message)
        self.message, self.code, self.native = message, code, native

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> Any:
        return type(self), (self.message, self.code, self.native)


class TimedOut(Error, TimeoutError):
    """Another client still held the lock when the wait ended. Nothing is held or queued."""


class Contended(TimedOut):
    """Another client holds the lock, and the wait was zero."""


class Cancelled(Error):
    """The call was cancelled. Nothing is held or queued."""


class Unavailable(Error, ConnectionError):
    """The server did not answer in time, or refused the connection."""


class NoQuorum(Unavailable):
    """Fewer than a majority of nodes granted the lock."""


class InDoubt(Unavailable):
    """The server may have granted the lock. Holdfast undoes that, at the latest the ttl does."""


class Lost(Error):
    """The validity of the lease ended, or the server reported the loss. Another client may hold the lock."""


class Revoked(Lost):
    """An operator broke the lock."""


class NotHeld(Error):
    """The lease was released, or the name has no such holder."""


class Denied(Error, PermissionError):
    """A wrong password or a missing permission."""


class NotSupported(Error, NotImplementedError):
    """This backend does not have that kind of lock or option."""


class KindMismatch(Error):
    """At the server the name is another kind of lock."""


class BadName(Error, ValueError):
    """A name is empty, longer than 512 bytes, or not UTF-8."""


class BadConfig(Error, ValueError):
    """A mistake in a URL, a configuration file or an option. The message has all of them."""


class WouldDeadlock(Error, RuntimeError):
    """The call would wait for what only its caller can end."""


class Closed(Error):
    """The client was closed."""


class Forked(Error, RuntimeError):
    """The client belongs to the parent process. Open one in this process."""


class Exhausted(Error, OSError):
    """This machine or a limit gives no more memory, threads or descriptors."""


class Internal(Error):
    """None of the others. The message says what."""


_BY_CODE: Dict[int, Type[Error]] = dict(enumerate([
    Contended, TimedOut, Cancelled, Unavailable, NoQuorum, InDoubt, Lost, Revoked, NotHeld, Denied, NotSupported, KindMismatch,
    BadName, BadConfig, WouldDeadlock, Closed, Forked], 1))
_BY_CODE[100] = Exhausted


def error_of(info: "c.ErrorInfo") -> Error:
    """The exception for a failed call."""
    return made(info.code, info.native, info.message.decode(errors="replace"))


def made(code: int, native: int, message: str) -> Error:
    """The exception for a code of holdfast.h."""
    return _BY_CODE.get(code, Internal)(message, code, native)


_exiting = False


def interpreter_exits() -> None:
    """From now on a call that fails on another thread does not return: it can only be a daemon thread, whose exception nobody
    handles any more, and which would end the process if it wrote that while the interpreter is taken down."""
    global _exiting
    _exiting = True


def check(code: int, info: "c.ErrorInfo") -> None:
    """Raises the exception for the code of a call."""
    if code == c.OK:
        return
    if _exiting and threading.current_thread() is not threading.main_thread():
        threading.Event().wait()
    raise error_of(info)
