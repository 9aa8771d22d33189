"""Clients: connections to one backend."""
import atexit
import json
import weakref
from ctypes import byref, c_void_p
from typing import Any, AsyncIterator, Dict, Iterator, List, NamedTuple, Optional

from . import _library as c
from ._errors import check, interpreter_exits
from ._events import Event, Events
from ._library import library
from ._lock import Handle, Lock, SharedLock
from ._queue import Start, wait_async
from ._queue import wait as wait_for

Json = Dict[str, Any]
Seconds = Optional[float]


class Leader(NamedTuple):
    """The leader of an election."""

    value: str
    host: str
    owner: str
    token: int


class Election:
    """One candidate of an election; made by Client.election."""

    def __init__(self, client: "Client", owner: Handle, name: str, wait: Optional[float]) -> None:
        self.name = name
        self._client, self._owner, self._wait = client, owner, wait

    def lead(self, value: str = "", wait: Optional[float] = None) -> Lock:
        """`with election.lead("10.0.0.1:80") as term`: waits until this candidate leads. Others see `value`, of at most 128
        bytes."""
        return Lock(self._owner, self.name, self._owner.pointer, self._wait if wait is None else wait, note=value)

    def leader(self) -> Optional[Leader]:
        """Who leads now, or None."""
        return self._read(self._client._ask(self._question(None, 0)))

    def observe(self, known: Optional[Leader], wait: Optional[float] = None) -> Optional[Leader]:
        """Waits until another than `known` leads, or none, and returns it. Raises TimedOut. With memory, etcd and ZooKeeper the
        server tells; elsewhere Holdfast polls."""
        question = self._question(known, max(1, c.milliseconds(wait)))
        return self._read(_objects(wait_for(self._client._start(question)) or ""))

    async def leader_async(self) -> Optional[Leader]:
        return self._read(await self._client._ask_async(self._question(None, 0)))

    async def observe_async(self, known: Optional[Leader], wait: Optional[float] = None) -> Optional[Leader]:
        """As observe(). Takes no thread."""
        return self._read(await self._client._ask_async(self._question(known, max(1, c.milliseconds(wait)))))

    def _question(self, known: Optional[Leader], wait_ms: int) -> "c.Question":
        return _question(c.LEADER, self.name, owner=known and known.owner, wait=wait_ms)

    @staticmethod
    def _read(answers: List[Json]) -> Optional[Leader]:
        answer = answers[0]
        if not answer["led"]:
            return None
        return Leader(answer["value"], answer["host"], answer["owner"], answer.get("token", 0))


class Client:
    """Connections to one backend. Thread-safe. Closed by `with`, by close(), and when the interpreter exits; what is still held
    is then released as abandoned. In a child of os.fork() its functions raise Forked."""

    def __init__(self, what: Optional[str] = None, *, config: Optional[str] = None, close_grace: float = 1.0,
                 events: bool = False) -> None:
        self._handle = c_void_p()
        self._closed = False
        self._events = Events() if events else None
        error = c.ErrorInfo()
        options = c.ClientOptions(config_file=c.text(config), close_grace=c.milliseconds(close_grace),
                                  reports=self._events.handle if self._events else None)
        check(library.hf_open(c.text(what), byref(options), byref(self._handle), byref(error)), error)
        _open.add(self)

    def __repr__(self) -> str:
        return "<holdfast.Client>"  # a URL may have a password

    def __reduce__(self) -> Any:
        raise TypeError("a holdfast.Client belongs to its process: open one in each")

    def close(self) -> None:
        """Ends every wait, and releases every lease, as abandoned."""
        _open.discard(self)
        library.hf_close(self._handle)
        self._closed = True

    def __del__(self, free: Any = library.hf_client_free) -> None:
        free(self._handle)
        self._handle = c_void_p()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self.close()

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self.close()

    # -- events

    def events(self, timeout: Seconds = None) -> Iterator[Event]:
        """What happens to this client's locks, for a log: waits for the next event, and ends after the close of the client, or
        when none has come for `timeout` seconds. The client has to be opened with `events=True`, and keeps the last 4096."""
        return self._reported().read(timeout, lambda: self._closed)

    def events_async(self, timeout: Seconds = None) -> AsyncIterator[Event]:
        """The same for `async for`."""
        return self._reported().read_async(timeout, lambda: self._closed)

    def _reported(self) -> Events:
        if self._events is None:
            raise ValueError("this client reports no events\n  Open it with events=True.")
        return self._events

    # -- locks

    def _lock(self, name: str, options: "c.LockOptions") -> Handle:
        handle, error = Handle(self), c.ErrorInfo()
        check(library.hf_lock_new(self._handle, c.text(name), byref(options), byref(handle.pointer), byref(error)), error)
        return handle

    def lock(self, name: str, *, ttl: Seconds = None, wait: Seconds = None, note: Optional[str] = None,
             max_hold: Seconds = None, lock_delay: float = 0, min_hold: float = 0, renew: bool = True) -> Lock:
        """One holder at a time. Sends nothing yet. All times are in seconds.

        `ttl`: for how long the server keeps the lock if this process dies; Holdfast renews it, but with `renew=False` it is lost
        then. Default: that of the configuration, else 10. `wait`: how long to wait for it; None: for ever. `note`: what
        `inspect` shows. `max_hold`: it is lost so long after the grant. `lock_delay`: for how long the name stays closed after a
        holder that did not release it. `min_hold`: for how long it stays closed from a grant on.
        """
        owner = self._lock(name, _options(c.MUTEX, 1, ttl, max_hold, lock_delay, min_hold, renew))
        return Lock(owner, name, owner.pointer, wait, note=note)

    def shared_lock(self, name: str, *, ttl: Seconds = None, wait: Seconds = None, note: Optional[str] = None,
                    max_hold: Seconds = None, lock_delay: float = 0, min_hold: float = 0, renew: bool = True) -> SharedLock:
        """One writer or any number of readers: `with client.shared_lock("prices").read() as lease`. The rest as for lock()."""
        owner = self._lock(name, _options(c.SHARED_MUTEX, 1, ttl, max_hold, lock_delay, min_hold, renew))
        return SharedLock(owner, name, wait, note)

    def semaphore(self, name: str, limit: int, *, permits: int = 1, ttl: Seconds = None, wait: Seconds = None,
                  note: Optional[str] = None, max_hold: Seconds = None, lock_delay: float = 0, min_hold: float = 0,
                  renew: bool = True) -> Lock:
        """At most `limit` permits at a time, of which an acquisition takes `permits`. All clients name the same limit. The rest
        as for lock()."""
        owner = self._lock(name, _options(c.SEMAPHORE, limit, ttl, max_hold, lock_delay, min_hold, renew))
        return Lock(owner, name, owner.pointer, wait, permits=permits, note=note)

    def election(self, name: str, *, ttl: Seconds = None, wait: Seconds = None, max_hold: Seconds = None,
                 lock_delay: float = 0, min_hold: float = 0) -> Election:
        """A candidate: one term at a time. The rest as for lock()."""
        owner = self._lock(name, _options(c.ELECTION, 1, ttl, max_hold, lock_delay, min_hold, True))
        return Election(self, owner, name, wait)

    # -- operators' questions; docs/json.md has the fields

    def _ask(self, question: "c.Question") -> List[Json]:
        answer, error = c_void_p(), c.ErrorInfo()
        check(library.hf_ask(self._handle, byref(question), byref(answer), byref(error)), error)
        return _objects(c.taken(answer.value))

    def _start(self, question: "c.Question") -> Start:
        return lambda queue, call, error: int(library.hf_ask_start(self._handle, byref(question), queue, call, error))

    async def _ask_async(self, question: "c.Question") -> List[Json]:
        return _objects(await wait_async(self._start(question)))

    def inspect(self, name: str) -> Json:
        """The holders of the name, and its waiters."""
        return self._ask(_question(c.INSPECT, name))[0]

    def list(self, prefix: str = "", limit: int = 10000) -> "List[str]":
        """The names that are held and begin with `prefix`."""
        return [answer["name"] for answer in self._ask(_question(c.LIST, prefix, limit=limit))]

    def break_lock(self, name: str, *, owner: Optional[str] = None, token: Optional[int] = None, now: bool = False,
                   note: Optional[str] = None) -> "List[Json]":
        """Revokes leases: all of the name, or that of one owner or token. With `now` the name is free at once, and two holders
        are possible. Raises NotHeld if there is no such holder."""
        return self._ask(_question(c.BREAK, name, owner=owner, token=token, now=now, note=note))

    def request_release(self, name: str, *, owner: Optional[str] = None, token: Optional[int] = None) -> "List[Json]":
        """Asks holders to release; see Lease.asked. Returns those that were asked."""
        holders: List[Json] = self._ask(_question(c.ASK, name, owner=owner, token=token))[0]["holders"]
        return holders

    def examine(self) -> Json:
        """What makes the deployment unsafe or slow."""
        return self._ask(_question(c.EXAMINE))[0]

    # -- the same in asyncio

    async def inspect_async(self, name: str) -> Json:
        return (await self._ask_async(_question(c.INSPECT, name)))[0]

    async def list_async(self, prefix: str = "", limit: int = 10000) -> "List[str]":
        return [answer["name"] for answer in await self._ask_async(_question(c.LIST, prefix, limit=limit))]

    async def break_lock_async(self, name: str, *, owner: Optional[str] = None, token: Optional[int] = None, now: bool = False,
                               note: Optional[str] = None) -> "List[Json]":
        return await self._ask_async(_question(c.BREAK, name, owner=owner, token=token, now=now, note=note))

    async def request_release_async(self, name: str, *, owner: Optional[str] = None,
                                    token: Optional[int] = None) -> "List[Json]":
        asked = await self._ask_async(_question(c.ASK, name, owner=owner, token=token))
        holders: List[Json] = asked[0]["holders"]
        return holders

    async def examine_async(self) -> Json:
        return (await self._ask_async(_question(c.EXAMINE)))[0]


def _question(what: int, name: str = "", *, owner: Optional[str] = None, token: Optional[int] = None, limit: int = 10000,
              wait: int = 0, note: Optional[str] = None, now: bool = False) -> "c.Question":
    if token is not None and not 0 < token < 2**64:  # 0 would mean every holder
        raise ValueError(f"{token} is no token: leave it out to mean all holders, or name one by owner=")
    return c.Question(what=what, name=c.text(name), owner=c.text(owner), token=token or 0, limit=limit, wait=wait,
                      note=c.text(note), now=int(now))


def _objects(answer: str) -> List[Json]:
    return [json.loads(line) for line in answer.splitlines()]


def _options(kind: int, limit: int, ttl: Seconds, max_hold: Seconds, lock_delay: float, min_hold: float,
             renew: bool) -> "c.LockOptions":
    def at_least_one(seconds: Seconds) -> int:
        return 0 if seconds is None else max(1, c.milliseconds(seconds))  # 0 is the default

    return c.LockOptions(kind=kind, limit=c.unsigned(limit), no_renewal=int(not renew), ttl=at_least_one(ttl),
                         max_hold=at_least_one(max_hold), lock_delay=c.milliseconds(lock_delay),
                         min_hold=c.milliseconds(min_hold))


_open: "weakref.WeakSet[Client]" = weakref.WeakSet()


def _at_exit() -> None:
    interpreter_exits()
    for client in list(_open):
        client.close()


atexit.register(_at_exit)
