"""A lease: the proof that one acquisition is held."""
from ctypes import byref, c_void_p
from typing import Any, Optional, Tuple

from . import _library as c
from ._errors import Error, Forked, Lost, check, error_of
from ._library import library
from ._queue import Start, wait, wait_async

_PREVIOUS = ("unknown", "none", "released", "abandoned", "crashed")
_STATES = ("empty", "held", "at_risk", "lost", "released")


class Lease:
    """What `acquire` returns, and `with` and `async with` give. Released when the block ends; as abandoned if an exception ends
    it, or if the object is deleted while it holds.

    Any thread may read it. One thread at a time renews, downgrades or releases it.
    """

    def __init__(self, name: str, client: Any, parts: int) -> None:
        self._handle = c_void_p()
        self.name = name
        self._client = client  # is not closed while this lives
        self._parts = parts

    def __del__(self, free: Any = library.hf_lease_free) -> None:
        free(self._handle)
        self._handle = c_void_p()

    def __repr__(self) -> str:
        return f"<holdfast.Lease of {self.name!r}: {self.state}>"

    def __reduce__(self) -> Any:
        raise TypeError("a holdfast.Lease belongs to its process")

    def _look(self, part: int = 0) -> "c.Facts":
        facts, error = c.Facts(), c.ErrorInfo()
        check(library.hf_lease_look(self._handle, part, byref(facts), byref(error)), error)
        return facts

    @property
    def valid(self) -> bool:
        """Whether it is held and valid now. Asks no server."""
        return bool(library.hf_lease_valid(self._handle))

    @property
    def lost(self) -> bool:
        """Whether it is held no more though it was not released. Asks no server."""
        return not self.valid and self.state != "released"

    @property
    def token(self) -> int:
        """The fencing token, for the store that the lock protects; 0 if the backend has none."""
        return int(self._look().token)

    @property
    def tokens(self) -> Tuple[int, ...]:
        """Of acquire_all: that of each lock."""
        return tuple(int(self._look(part).token) for part in range(self._parts))

    @property
    def left(self) -> float:
        """For how many seconds no other client can hold the lock, as known now."""
        return min(int(self._look(part).left) for part in range(self._parts)) / 1000

    @property
    def state(self) -> str:
        """held, at_risk (a renewal failed), lost, or released."""
        return max((_STATES[self._look(part).state] for part in range(self._parts)),
                   key=("held", "at_risk", "released", "lost", "empty").index)

    @property
    def previous(self) -> str:
        """How the previous holder ended: none, released, abandoned, crashed or unknown."""
        return _PREVIOUS[self._look().previous]

    @property
    def owner(self) -> str:
        """The id of this acquisition, for Client.break_lock and Client.request_release."""
        return bytes(self._look().owner).decode()

    @property
    def asked(self) -> bool:
        """Whether another client asked for the release of this lease."""
        return any(self._look(part).asked for part in range(self._parts))

    def check(self) -> None:
        """Raises Lost, or Revoked, unless it is valid now; Closed where its client was closed."""
        if not self.valid:
            raise self._loss()

    def _loss(self) -> Error:
        for part in range(self._parts):
            reason = int(self._look(part).reason)
            if reason:
                error = error_of(c.ErrorInfo(code=reason))
                return type(error)(f"the lock {self.name!r} is lost", reason)
        if self.state == "released":
            return error_of(c.ErrorInfo(code=c.NOT_HELD, message=b"the lease was released"))
        return Lost(f"the lock {self.name!r} is lost", c.LOST)

    # -- what asks the server

    def renew(self) -> None:
        """Renews now instead of at a third of the ttl, as Holdfast does by itself."""
        error = c.ErrorInfo()
        check(library.hf_lease_renew(self._handle, byref(error)), error)

    def downgrade(self) -> None:
        """From writer to reader, without another writer in between."""
        error = c.ErrorInfo()
        check(library.hf_lease_downgrade(self._handle, byref(error)), error)

    def release(self, abandoned: bool = False) -> None:
        """Raises Lost if the lease was lost before, and Unavailable if the server does not answer: Holdfast then repeats the
        release in the background. `abandoned`: the work is not finished, which the next holder reads as `previous`."""
        error = c.ErrorInfo()
        check(library.hf_lease_release(self._handle, int(abandoned), byref(error)), error)

    def wait_lost(self, timeout: Optional[float] = None) -> bool:
        """Blocks until the lease is lost (True), is released, or the timeout has passed (False)."""
        try:
            return wait(self._start(c.WATCH), timeout=timeout) is not None
        except Error as e:
            return _is_loss(e)

    # -- the same in asyncio

    def _start(self, what: int) -> Start:
        return lambda queue, call, error: int(library.hf_lease_start(self._handle, what, queue, call, error))

    async def renew_async(self) -> None:
        await wait_async(self._start(c.RENEW))

    async def downgrade_async(self) -> None:
        await wait_async(self._start(c.DOWNGRADE))

    async def release_async(self, abandoned: bool = False) -> None:
        """If the task is cancelled meanwhile, the release goes on."""
        await wait_async(self._start(c.ABANDON if abandoned else c.RELEASE))

    async def wait_lost_async(self) -> bool:
        """Waits until the lease is lost (True) or released (False)."""
        try:
            await wait_async(self._start(c.WATCH))
        except Error as e:
            return _is_loss(e)
        return False

    # -- blocks

    def __enter__(self) -> "Lease":
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        try:
            self.release(kind is not None)
        except Error as e:
            if kind is None and isinstance(e, Lost):
                raise self._loss() from None

    async def __aenter__(self) -> "Lease":
        return self

    async def __aexit__(self, kind: Any, value: Any, traceback: Any) -> None:
        try:
            await self.release_async(kind is not None)
        except Error as e:
            if kind is None and isinstance(e, Lost):
                raise self._loss() from None


def _is_loss(error: Error) -> bool:
    """What a watch was answered: any reason but a release."""
    if isinstance(error, Forked):
        raise error
    return error.code != c.NOT_HELD
