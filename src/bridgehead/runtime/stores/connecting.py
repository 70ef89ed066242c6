"""Connecting: from an address to connections of redis-py, how long to wait, and what a failure means.

A Sentinel address is `redis+sentinel://one:26379,two:26379/NAME/DATABASE`. A password in it is that of the
server; Sentinels are asked without one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from redis.asyncio import BlockingConnectionPool, Sentinel
from redis.asyncio import Redis as Client
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
)

if TYPE_CHECKING:
    from redis.asyncio.connection import ConnectionPool

T = TypeVar("T")

CONNECT_SECONDS = 1.0
"""How long a connection may take that nobody waits for."""
_SENTINEL_PORT = 26379
_CANCEL_SECONDS = 0.1
_STANDSTILL = 0.25
"""A timer that is late by this share of its time was held up by this machine, not by Redis."""
UNUSABLE = {
    "READONLY": "read_only",
    "OOM": "full",
    "MISCONF": "cannot_persist",
    "LOADING": "loading",
    "MASTERDOWN": "master_down",
    "NOREPLICAS": "no_replicas",
    "NOAUTH": "password",
    "WRONGPASS": "password",
    "NOPERM": "permission",
    "BUSY": "busy",
}
"""What is in a server's refusals that every other command would meet as well."""
_KINDS: dict[type[Exception], str] = {
    TimeoutError: "slow",
    AuthenticationError: "password",
    BusyLoadingError: "loading",
    ReadOnlyError: "read_only",
    OutOfMemoryError: "full",
    MasterDownError: "master_down",
    NoPermissionError: "permission",
}
"""The refusals that redis-py has a class for; of these it does not show the word."""
_WORDS = {
    "read_only": "It is read-only, as a replica is while another server takes over.",
    "full": "It is full: its maxmemory is used up.",
    "cannot_persist": "It cannot write to its disk, and refuses changes.",
    "loading": "It is loading its data after a start.",
    "password": "It rejects the password, or needs one.",
    "permission": "Its user lacks a permission that is needed.",
}


def open_pool(url: str) -> ConnectionPool:
    """Make what connections come from; nothing is opened yet."""
    once: dict[str, Any] = {
        "retry": Retry(NoBackoff(), 0),
        "socket_connect_timeout": CONNECT_SECONDS,
        "max_connections": 8,
        "timeout": CONNECT_SECONDS,
        "protocol": 2,
    }
    scheme, _, rest = url.partition("://")
    if scheme.endswith("+sentinel"):
        return _open_sentinel_pool(url, once)
    if scheme != "unix":
        once["socket_keepalive"] = True
    known = {"valkey": "redis", "valkeys": "rediss"}.get(scheme, scheme)
    return BlockingConnectionPool.from_url(f"{known}://{rest}", **once)


async def close_pool(pool: ConnectionPool) -> None:
    """Close what came from it, and what asked Sentinels for it."""
    await pool.disconnect()
    if isinstance(pool, SentinelConnectionPool):
        for sentinel in pool.sentinel_manager.sentinels:
            await sentinel.aclose()


def _open_sentinel_pool(url: str, once: dict[str, Any]) -> ConnectionPool:
    parts = urlsplit(url)
    name, _, database = parts.path.strip("/").partition("/")
    addresses = [_address(one) for one in parts.netloc.rpartition("@")[2].split(",")]
    sentinel = Sentinel(addresses, socket_timeout=CONNECT_SECONDS, socket_connect_timeout=CONNECT_SECONDS)
    del once["timeout"], once["max_connections"]
    client: Client = sentinel.master_for(
        name,
        db=int(database or 0),
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        ssl=parts.scheme.startswith("rediss"),
        **once,
    )
    return client.connection_pool


def _address(text: str) -> tuple[str, int]:
    host, mark, port = text.rpartition(":")
    return (host, int(port)) if mark else (text, _SENTINEL_PORT)


def reason_of(failure: BaseException) -> str:
    """Name what a failure is, in a word for metrics."""
    for kind, reason in _KINDS.items():
        if isinstance(failure, kind):
            return reason
    if isinstance(failure, ResponseError):
        text = str(failure)
        return next((reason for word, reason in UNUSABLE.items() if word in text), "refused")
    return "gone"


def is_unusable(failure: Exception) -> bool:
    """Tell whether a server refused a command as it would refuse the next one too."""
    return reason_of(failure) in UNUSABLE.values()


def describe(failure: BaseException, seconds: float) -> str:
    """Say what a failure is, for whoever runs the server."""
    reason = reason_of(failure)
    if reason == "slow":
        return f"It did not answer within {seconds * 1000:g} ms."
    return _WORDS.get(reason) or f"It cannot be reached, or closed the connection ({failure})."


async def run_within(seconds: float, work: Awaitable[T]) -> T:
    """Wait for work, but no longer than this; raises TimeoutError.

    Unlike `asyncio.timeout`, it does not take a pause of this process for one of the server: the answer may
    have been waiting in the socket, unread, when a timer that is late fires.
    """
    loop = asyncio.get_running_loop()
    task: Any = asyncio.current_task()
    is_over = False
    timer: asyncio.TimerHandle

    def begin() -> None:
        nonlocal timer
        timer = loop.call_later(seconds, expire, monotonic() + seconds)

    def expire(due: float) -> None:
        nonlocal is_over
        if monotonic() - due > seconds * _STANDSTILL:
            begin()
        else:
            is_over = True
            task.cancel()

    begin()
    try:
        done = await work
    except asyncio.CancelledError:
        if not is_over or task.uncancel() > 0:
            raise
        raise TimeoutError from None
    else:
        if is_over:  # the answer came in the same turn, and `wait_for` preferred it
            task.uncancel()
        return done
    finally:
        timer.cancel()


async def end_tasks(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for their end, as often as it takes.

    Up to Python 3.11, `asyncio.wait_for`, which redis-py uses, forgets a cancellation that comes in the turn
    in which what it waits for is done.
    """
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=_CANCEL_SECONDS)
