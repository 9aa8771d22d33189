"""The functions and structs of holdfast.h, by ctypes: a wheel of this package runs on every Python and machine."""
import ctypes
import os
from ctypes import (POINTER, Structure, byref, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p,
                    string_at)
from typing import Any, ClassVar, Optional

FOREVER = 2**63 - 1
OK, CONTENDED, TIMED_OUT, LOST, NOT_HELD = 0, 1, 2, 7, 9
MUTEX, SHARED_MUTEX, SEMAPHORE, ELECTION = range(4)
RENEW, DOWNGRADE, RELEASE, ABANDON, WATCH = range(1, 6)
INSPECT, LIST, BREAK, ASK, EXAMINE, LEADER = range(1, 7)


class Sized(Structure):
    """Begins with its own size, and has zeros for what is not given."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(size=ctypes.sizeof(self), **fields)


class ErrorInfo(Sized):
    _fields_ = [("size", c_uint32), ("code", c_int32), ("native", c_int32), ("message", c_char * 1024)]


class ClientOptions(Sized):
    _fields_ = [("size", c_uint32), ("config_file", c_char_p), ("close_grace", c_int64), ("reports", c_void_p)]


class LockOptions(Sized):
    _fields_ = [("size", c_uint32), ("kind", c_int32), ("limit", c_uint32), ("no_renewal", c_int32), ("ttl", c_int64),
                ("max_hold", c_int64), ("lock_delay", c_int64), ("min_hold", c_int64)]


class Part(Structure):
    _fields_ = [("size", c_uint32), ("shared", c_int32), ("permits", c_uint32), ("lock", c_void_p)]


class AcquireOptions(Sized):
    _fields_ = [("size", c_uint32), ("shared", c_int32), ("permits", c_uint32), ("wait", c_int64), ("note", c_char_p)]


class Event(Sized):
    _fields_: ClassVar[Any] = [("size", c_uint32), ("call", c_uint64), ("lease", c_void_p), ("error", ErrorInfo),
                               ("json", c_void_p)]

    def __init__(self) -> None:
        super().__init__(error=ErrorInfo())


class Report(Sized):
    _fields_ = [("size", c_uint32), ("kind", c_int32), ("reason", c_int32), ("native", c_int32), ("token", c_uint64),
                ("took", c_int64), ("left", c_int64), ("dropped", c_uint64), ("name", c_char * 513), ("owner", c_char * 513),
                ("text", c_char * 1024)]


class Facts(Sized):
    _fields_ = [("size", c_uint32), ("state", c_int32), ("previous", c_int32), ("reason", c_int32), ("shared", c_int32),
                ("permits", c_uint32), ("asked", c_int32), ("left", c_int64), ("token", c_uint64), ("owner", c_char * 513)]


class Question(Sized):
    _fields_ = [("size", c_uint32), ("what", c_int32), ("name", c_char_p), ("owner", c_char_p), ("token", c_uint64),
                ("limit", c_uint64), ("wait", c_int64), ("note", c_char_p), ("now", c_int32)]


def _load() -> ctypes.CDLL:
    name = os.environ.get("HOLDFAST_C_LIBRARY") or "libholdfast-c.so.1"
    try:
        found = ctypes.CDLL(name)
    except OSError as e:
        raise ImportError(f"{e}\n  Install Holdfast's C library, or name its file in HOLDFAST_C_LIBRARY.") from e
    error, out = POINTER(ErrorInfo), POINTER(c_void_p)
    for name, result, arguments in [
            ("hf_open", c_int, [c_char_p, POINTER(ClientOptions), out, error]),
            ("hf_close", None, [c_void_p]),
            ("hf_client_free", None, [c_void_p]),
            ("hf_lock_new", c_int, [c_void_p, c_char_p, POINTER(LockOptions), out, error]),
            ("hf_lock_all", c_int, [POINTER(Part), c_size_t, out, error]),
            ("hf_lock_free", None, [c_void_p]),
            ("hf_acquire", c_int, [c_void_p, POINTER(AcquireOptions), out, error]),
            ("hf_queue_new", c_int, [out, error]),
            ("hf_queue_free", None, [c_void_p]),
            ("hf_queue_fd", c_int, [c_void_p]),
            ("hf_queue_next", c_int, [c_void_p, POINTER(Event)]),
            ("hf_queue_report", c_int, [c_void_p, POINTER(Report)]),
            ("hf_acquire_start", c_int, [c_void_p, POINTER(AcquireOptions), c_void_p, POINTER(c_uint64), error]),
            ("hf_cancel", None, [c_void_p, c_uint64]),
            ("hf_lease_valid", c_int, [c_void_p]),
            ("hf_lease_look", c_int, [c_void_p, c_size_t, POINTER(Facts), error]),
            ("hf_lease_renew", c_int, [c_void_p, error]),
            ("hf_lease_downgrade", c_int, [c_void_p, error]),
            ("hf_lease_release", c_int, [c_void_p, c_int, error]),
            ("hf_lease_start", c_int, [c_void_p, c_int, c_void_p, POINTER(c_uint64), error]),
            ("hf_lease_free", None, [c_void_p]),
            ("hf_ask", c_int, [c_void_p, POINTER(Question), out, error]),
            ("hf_ask_start", c_int, [c_void_p, POINTER(Question), c_void_p, POINTER(c_uint64), error]),
            ("hf_string_free", None, [c_void_p])]:
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


library = _load()


def milliseconds(seconds: Optional[float]) -> int:
    """Rounded up, so that a short time is not none at all. None: without a limit."""
    if seconds is None or seconds == float("inf"):
        return FOREVER
    if seconds < 0:
        raise ValueError(f"a time of {seconds} s is negative")
    return min(-int(-seconds * 1000 // 1), FOREVER)


def unsigned(count: int) -> int:
    """For a field of 32 bits, which would drop the others: what is out of range stays so."""
    return min(max(count, 0), 2**32 - 1)


def taken(json: Optional[int]) -> str:
    """The JSON of an answer, which is freed."""
    if not json:
        return ""
    try:
        return string_at(json).decode()
    finally:
        library.hf_string_free(json)


def text(value: Optional[str]) -> Optional[bytes]:
    """As C takes it, where a NUL would end it."""
    if value is None:
        return None
    encoded = value.encode()
    if b"\0" in encoded:
        raise ValueError("a text for Holdfast has no NUL")
    return encoded
