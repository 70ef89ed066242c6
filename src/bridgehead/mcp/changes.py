"""Changes: how a bridge says that something changed, and how each client hears of it.

`Changes` is the bridge's side: say what changed. A `Listener` is one client's side: what it wants to hear and
what it has not heard yet. What waits is coalesced, so that a client that does not read costs no more memory
than the number of things it listens to. Call only from the event loop's thread. No I/O here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from . import jsonrpc
from .lazy_imports import asyncio

if TYPE_CHECKING:
    from asyncio import Event

TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"
TASKS = "notifications/tasks"

Change = tuple[str, str | None]
"""A notification's method, and the resource's URI or the task's id where it is about one of these."""


def encode_change(change: Change) -> bytes:
    """Encode a change as a client of the handshake era hears of it."""
    method, uri = change
    return jsonrpc.notification(method, None if uri is None else {"uri": uri})


class Listener:
    """What one client listens to, and the changes that wait for it."""

    def __init__(
        self, lists: set[str], uris: set[str], encode: Callable[[Change], bytes] = encode_change
    ) -> None:
        self.lists = lists
        self.uris = uris
        self.encode = encode
        self.waiting: dict[Change, None] = {}
        """What there is to tell, in the order in which it happened."""
        self._wake: Event | None = None
        self._closed = False

    def close(self) -> None:
        """End: whoever waits hears nothing more."""
        self._closed = True
        self._rouse()

    def offer(self, change: Change) -> None:
        """Keep a change for the client if it wants to hear of it."""
        method, uri = change
        if (uri in self.uris) if uri is not None else (method in self.lists):
            self.push(change)

    def push(self, change: Change) -> None:
        """Keep a change for the client, who wants to hear of it."""
        self.waiting[change] = None
        self._rouse()

    def _rouse(self) -> None:
        if self._wake is not None:
            self._wake.set()

    def take(self) -> list[bytes]:
        """Take what there is to tell now, encoded."""
        messages = [self.encode(change) for change in self.waiting]
        self.waiting.clear()
        return messages

    async def wait(self) -> bool:
        """Wait until there is something to take; False means that it is over."""
        while not (self.waiting or self._closed):
            self._wake = asyncio.Event()
            await self._wake.wait()
        return bool(self.waiting)


class Changes:
    """Where a bridge announces that its lists or resources changed."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()
        self._generation = 0
        self.relay: Callable[[Change], None] | None = None
        """Is told of each change that begins in this process, where others serve the same bridge."""

    @property
    def generation(self) -> int:
        """Grows with every change of a list, so that what was made from the lists can be made again."""
        return self._generation

    def listen(self, listener: Listener) -> None:
        """Start telling a listener."""
        self._listeners.add(listener)

    def leave(self, listener: Listener) -> None:
        """Stop telling a listener."""
        self._listeners.discard(listener)

    def tools(self) -> None:
        """Say that the list of tools changed."""
        self._announce((TOOLS, None))

    def prompts(self) -> None:
        """Say that the list of prompts changed."""
        self._announce((PROMPTS, None))

    def resources(self) -> None:
        """Say that the list of resources or templates changed."""
        self._announce((RESOURCES, None))

    def resource(self, uri: str) -> None:
        """Say that the contents of one resource changed."""
        self._announce((UPDATED, uri))

    def _announce(self, change: Change) -> None:
        self.hear(change)
        if self.relay is not None:
            self.relay(change)

    def hear(self, change: Change) -> None:
        """Take in a change that began in another process: tell the clients of this one."""
        if change[1] is None:
            self._generation += 1
        for listener in tuple(self._listeners):
            listener.offer(change)

    def hear_everything(self) -> None:
        """Take in that anything may have changed elsewhere: tell each client so of what it listens to."""
        self._generation += 1
        for listener in tuple(self._listeners):
            for method in tuple(listener.lists):
                listener.offer((method, None))
            for uri in tuple(listener.uris):
                listener.offer((UPDATED, uri))
