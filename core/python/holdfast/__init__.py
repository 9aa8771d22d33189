"""Holdfast, a distributed lock.

    with holdfast.open("redis://cache1") as client:
        with client.lock("orders", ttl=10, wait=5) as lease:
            store(lease.token)

docs/python.md is the guide.
"""
from typing import Optional

from ._client import Client, Election, Leader
from ._errors import (BadConfig, BadName, Cancelled, Closed, Contended, Denied, Error, Exhausted, Forked, InDoubt, Internal,
                      KindMismatch, Lost, NoQuorum, NotHeld, NotSupported, Revoked, TimedOut, Unavailable, WouldDeadlock)
from ._events import Event
from ._lease import Lease
from ._lock import Lock, SharedLock, acquire_all

__all__ = ["BadConfig", "BadName", "Cancelled", "Client", "Closed", "Contended", "Denied", "Election", "Error", "Event",
           "Exhausted", "Forked", "InDoubt", "Internal", "KindMismatch", "Leader", "Lease", "Lock", "Lost", "NoQuorum", "NotHeld",
           "NotSupported", "Revoked", "SharedLock", "TimedOut", "Unavailable", "WouldDeadlock", "acquire_all", "open"]


def open(what: Optional[str] = None, *, config: Optional[str] = None, close_grace: float = 1.0, events: bool = False) -> Client:
    """`what`: a URL, a name in holdfast.toml, or None for HOLDFAST_URL or that file's default. Connects on first use. `events`:
    keeps what Client.events() returns."""
    return Client(what, config=config, close_grace=close_grace, events=events)
