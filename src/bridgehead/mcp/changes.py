"""Changes: notifications from a bridge to its clients that a list or a resource changed.

A bridge calls `Changes`; a `Listener` holds one client's filter and its pending notifications. Equal pending
changes are merged, so that a client that does not read costs no more memory than its subscriptions. Call only
from the event loop's thread. No I/O here.
"""

from __future__ import annotations

import asyncio
from asyncio import Event
from collections.abc import Callable, Iterable

from . import jsonrpc

TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"
TASKS = "notifications/tasks"

SUBSCRIPTION_BYTES = 512
"""Bytes charged for a subscription in addition to its URI: two table entries and a pending change."""

Change = tuple[str, str | None]
"""A notification's method, and the URI or task id that it is about; None for a list."""


def encode_change(change: Change) -> bytes:
    """Encode a change for a client of the handshake era."""
    method, uri = change
    return jsonrpc.notification(method, None if uri is None else {"uri": uri})


def measure_subscriptions(names: Iterable[str]) -> int:
    """Return the bytes that subscriptions to these URIs or task ids are charged with."""
    return sum(SUBSCRIPTION_BYTES + len(name) for name in names)


class Listener:
    """One client's filter, and the changes not sent to it yet."""

    def __init__(
        self, lists: set[str], uris: set[str], encode: Callable[[Change], bytes] = encode_change
    ) -> None:
        self.lists = lists
        self.uris = uris
        self.encode = encode
        self.waiting: dict[Change, None] = {}
        """Pending changes in order; a dict, so that an equal change is pending once."""
        self._wake: Event | None = None
        self._closed = False

    @property
    def size(self) -> int:
        """Bytes that its subscriptions are charged with."""
        return measure_subscriptions(self.uris)

    def close(self) -> None:
        """Close: `wait` returns at once from now on."""
        self._closed = True
        self._rouse()

    def offer(self, change: Change) -> None:
        """Queue a change if it passes the client's filter."""
        method, uri = change
        if (uri in self.uris) if uri is not None else (method in self.lists):
            self.push(change)

    def push(self, change: Change) -> None:
        """Queue a change without filtering."""
        self.waiting[change] = None
        self._rouse()

    def _rouse(self) -> None:
        if self._wake is not None:
            self._wake.set()

    def take(self) -> list[bytes]:
        """Return the pending changes, encoded, and forget them."""
        messages = [self.encode(change) for change in self.waiting]
        self.waiting.clear()
        return messages

    async def wait(self) -> bool:
        """Wait for a pending change; False means that the listener is closed and empty."""
        while not (self.waiting or self._closed):
            self._wake = asyncio.Event()
            await self._wake.wait()
        return bool(self.waiting)


class Changes:
    """Announces that lists or resources of a bridge changed."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()
        self._generation = 0
        self.relay: Callable[[Change], None] | None = None
        """Called with each change made in this process, to pass it to other processes of the same bridge."""

    @property
    def generation(self) -> int:
        """Grows with every change of a list; tells caches of encoded lists that they are stale."""
        return self._generation

    @property
    def is_awaited(self) -> bool:
        """Whether any client of this process would hear of a change."""
        return any(listener.lists or listener.uris for listener in self._listeners)

    def listen(self, listener: Listener) -> None:
        """Add a listener."""
        self._listeners.add(listener)

    def leave(self, listener: Listener) -> None:
        """Remove a listener."""
        self._listeners.discard(listener)

    def tools(self) -> None:
        """Announce a changed list of tools."""
        self._announce((TOOLS, None))

    def prompts(self) -> None:
        """Announce a changed list of prompts."""
        self._announce((PROMPTS, None))

    def resources(self) -> None:
        """Announce a changed list of resources or templates."""
        self._announce((RESOURCES, None))

    def resource(self, uri: str) -> None:
        """Announce changed contents of one resource."""
        self._announce((UPDATED, uri))

    def _announce(self, change: Change) -> None:
        self.notify(change)
        if self.relay is not None:
            self.relay(change)

    def notify(self, change: Change) -> None:
        """Notify the clients of this process of a change made in another one."""
        if change[1] is None:
            self._generation += 1
        for listener in tuple(self._listeners):
            listener.offer(change)

    def notify_all(self) -> None:
        """Notify every client of all its subscriptions: notices of other processes may have been lost."""
        self._generation += 1
        for listener in tuple(self._listeners):
            for method in tuple(listener.lists):
                listener.offer((method, None))
            for uri in tuple(listener.uris):
                listener.offer((UPDATED, uri))
