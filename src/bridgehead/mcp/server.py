"""Server: one bridge being served to any number of connections. The methods of the protocol get it.

Owns what outlives a request: lifespans, open streams, encoded lists, tasks. Routing is in `dispatch`, whose
`Dispatcher` extends this class; two modules, because the methods need this one and the dispatcher needs them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import changes, jsonrpc
from .bridge import Bridge
from .calls.context import Context
from .calls.multi_round import Keys, MultiRound
from .calls.params import META_PREFIX
from .changes import Listener
from .connection import Client, Connection, Outlet
from .features.bridge_base import BridgeBase
from .lifespan import Lifespan, Lifespans
from .limits import Ledger, Limits
from .revisions import V2026_07_28

if TYPE_CHECKING:
    from .tasks.manager import Tasks

Body = tuple[bytes, dict[str, Any] | None]
"""An encoded result object, and the `_meta` to put into it."""
EventualBody = Body | Coroutine[Any, Any, Body]
EMPTY_BODY: Body = (b"{}", None)


class Server:
    """Serves one bridge."""

    def __init__(
        self,
        bridge: Bridge[Any],
        *,
        limits: Limits | None = None,
        state_key: Keys | None = None,
        lifespans: Lifespans | None = None,
        on_error: Callable[[str, int], None] | None = None,
        tasks: Tasks | None = None,
        scope: str | None = None,
    ) -> None:
        self.bridge = bridge
        self.limits = limits or Limits()
        self.lifespans = Lifespans() if lifespans is None else lifespans
        """Shared by the servers of one process that offer the same bridges."""
        self.on_error = on_error
        """Called with the method and the code of each protocol error that answers a request."""
        self.ledger = Ledger()
        """Charges bytes that outlive a request to its caller; a transport with accounts sets it."""
        self.streams: set[Listener] = set()
        """The open `subscriptions/listen` streams."""
        self.multi_round = MultiRound(state_key, self.limits.request_state_seconds)
        self.scope = bridge.info.name if scope is None else scope
        """Separates this server's tasks from those of other servers in the same task store."""
        self._dialects = bridge.dialects
        # Every result of the stateless era begins with the same bytes, so they are encoded once.
        self.info_meta = {META_PREFIX + "serverInfo": bridge.info.fit(V2026_07_28)}
        self.complete_head = b'{"resultType":"complete","_meta":%b' % jsonrpc.encode(self.info_meta)
        self._shared_tasks = tasks
        self._own_tasks: Tasks | None = None
        self._bodies: dict[Any, Body] = {}
        self._bodies_generation = 0

    @property
    def tasks(self) -> Tasks:
        """The tasks shared with other servers of this process, or this server's own."""
        if self._shared_tasks is not None:
            return self._shared_tasks
        if self._own_tasks is None:
            from .tasks.manager import Tasks  # lazy: tasks, 4 ms; most servers have none

            self._own_tasks = Tasks(self.limits, self.bridge.task_store)
            self._own_tasks.ledger = self.ledger
        return self._own_tasks

    def start(self) -> None:
        """Begin to enter the lifespans of the bridges, without waiting."""
        for bridge in self.bridge.bridges:
            self.lifespans[bridge].start()

    async def stop(self) -> None:
        """Stop this server's own tasks and leave the lifespans, within `shutdown_seconds`."""
        if self._own_tasks is not None:
            await self._own_tasks.stop()
        within = self.limits.shutdown_seconds
        await asyncio.gather(*(self.lifespans[bridge].stop(within) for bridge in self.bridge.bridges))

    def switch_bridge(self, context: Context[Any], bridge: BridgeBase) -> Lifespan:
        """Let a request continue with the state and dialect of one of the combined bridges."""
        lifespan = self.lifespans[bridge]
        if bridge is not self.bridge:
            context.lifespan, context.dialect = lifespan, self._dialects.get(bridge, bridge.dialect)
        return lifespan

    def reuse_body(self, key: Any, make: Callable[[], Body]) -> Body:
        """Return the body cached under this key; the cache is emptied when the bridge's lists change."""
        generation = self.bridge.changed.generation
        if self._bodies_generation != generation:
            self._bodies.clear()
            self._bodies_generation = generation
        body = self._bodies.get(key)
        if body is None:
            body = self._bodies[key] = make()
        return body

    def shows_contract(self, client: Client) -> bool:
        """Whether a client gets only the bridge's contract, because it named no revision."""
        return not client.names_revision and self.bridge.contract_revision is not None

    def adopt(self, connection: Connection, client: Client) -> None:
        """Record the client of a handshake on its connection, and send it list changes from now on."""
        connection.client = client
        if connection.listener is None:  # a second `initialize` keeps the listener with its subscriptions
            names = {"tools": changes.TOOLS, "prompts": changes.PROMPTS, "resources": changes.RESOURCES}
            kinds = () if self.shows_contract(client) else self.bridge.changing
            connection.listener = Listener({names[kind] for kind in kinds}, set())
            self.bridge.changed.listen(connection.listener)
            connection.listeners.append(connection.listener)

    @staticmethod
    async def announce(listener: Listener, outlet: Outlet) -> None:
        """Send changes to a client of the handshake era until its connection ends."""
        while await listener.wait():
            for message in listener.take():
                await outlet.send(message)

    @contextmanager
    def open_stream(self, connection: Connection, listener: Listener) -> Iterator[None]:
        """Count a listen stream and let its listener receive changes while it is open."""
        self.streams.add(listener)
        self.bridge.changed.listen(listener)
        connection.listeners.append(listener)
        try:
            with connection.park():
                yield
        finally:
            connection.listeners.remove(listener)
            self.bridge.changed.leave(listener)
            self.streams.discard(listener)

    def disconnect(self, connection: Connection) -> None:
        """Stop all work for a client that is gone."""
        if connection.listener is not None:
            self.bridge.changed.leave(connection.listener)
            connection.listener.close()
            self.ledger.release(connection.caller, connection.listener.size)
            connection.listener.uris.clear()  # a second call releases nothing
        connection.abandon_asked()
        connection.cancel_all()

    def end_streams(self) -> None:
        """End every listen stream with its result, because the server stops."""
        for listener in tuple(self.streams):
            listener.close()
