"""Game: a simulated game at a real WebSocket. It dials in as the game does, and answers from its world.

`answer` makes the replies; this module owns the connection and injects the faults.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Self

from msgspec import Struct
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Origin

from ..game.connection import SIMULATOR
from .answer import decode, reply
from .faults import HELD, Dice, Faults, garbage, nonsense, padded
from .world import World

LIMIT = 30.0
MAX_HELD = 8
MAX_STALE = 16
ABNORMAL = 1006

Closed = tuple[int, str]


class Exchange(Struct, frozen=True):
    """A request, its reply, and the faults that were drawn for it."""

    request: Any
    """Decoded, or the raw frame if it is not JSON."""
    reply: bytes | None
    faults: frozenset[str]


class Game:
    """One game: its world, and at most one connection."""

    user_agent: str | None = SIMULATOR
    """Says that this is no real game, so that nothing that is written here is missed in one."""

    def __init__(
        self,
        generation: int = 2,
        files: Mapping[str, Mapping[str, str]] | None = None,
        faults: Faults | None = None,
        *,
        seed: int = 0,
        watcher: Callable[[Exchange], None] | None = None,
    ) -> None:
        self.world = World(generation, files)
        self.requests: list[Any] = []
        """Requests in the order of arrival; empty with a `watcher`, which gets them instead."""
        self.closed: Closed | None = None
        """Close code and reason of the last connection, or of its refusal; None while connected."""
        self._dice = Dice(faults or Faults(), seed)
        self._watcher = watcher or (lambda exchange: self.requests.append(exchange.request))
        self._connection: ClientConnection | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: set[asyncio.Task[None]] = set()
        self._held: list[bytes] = []
        self._stale: deque[bytes] = deque(maxlen=MAX_STALE)

    @property
    def servers(self) -> dict[str, dict[str, str]]:
        """The files of each server."""
        return self.world.servers

    @property
    def faults(self) -> Faults:
        """The fault rates; can be replaced at any time."""
        return self._dice.faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self._dice.faults = faults

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now."""
        return self._reading is not None and not self._reading.done()

    async def dial(
        self,
        url: str,
        origin: str | None = None,
        *,
        trust: ssl.SSLContext | None = None,
        timeout: float = LIMIT,
    ) -> bool:
        """Connect as the game does, dropping the old connection; on failure `closed` has the reason."""
        await self.hang_up()
        try:
            connection = await connect(
                url,
                origin=Origin(origin) if origin else None,
                ssl=trust,
                open_timeout=timeout,
                close_timeout=LIMIT,
                ping_interval=None,  # a browser sends none
                max_size=None,
                proxy=None,
                user_agent_header=self.user_agent,
            )
        except (OSError, TimeoutError, WebSocketException) as failure:
            is_refused = isinstance(failure, ConnectionRefusedError)
            self.closed = (ABNORMAL, "nothing listens there" if is_refused else str(failure))
            return False
        self.closed = None
        self._connection = connection
        self._reading = asyncio.create_task(self._serve(connection))
        return True

    async def hang_up(self) -> None:
        """Close the connection as a page does when the player leaves it."""
        if self._connection is not None:
            await self._connection.close(1001)
            await self.wait_closed()

    async def wait_closed(self, timeout: float | None = LIMIT) -> Closed | None:
        """Wait until the connection is closed and return how; raises TimeoutError."""
        if self._reading is not None:
            async with asyncio.timeout(timeout):
                await asyncio.wait({self._reading})
        return self.closed

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.hang_up()

    async def _serve(self, connection: ClientConnection) -> None:
        """Answer requests until the connection ends."""
        try:
            async for frame in connection:
                try:
                    message = decode(frame) if isinstance(frame, str) else None
                except (ValueError, RecursionError):
                    message = None
                if message is None:
                    self._watcher(Exchange(frame, None, frozenset()))
                    continue
                fields: dict[str, Any] = message if isinstance(message, dict) else {}
                drawn = self._dice.draw(str(fields.get("method")))
                if "drop" in drawn:
                    self._watcher(Exchange(message, None, drawn))
                    connection.transport.abort()
                    continue
                answered = reply(self.world, message)
                self._watcher(Exchange(message, answered, drawn))
                if answered is not None:
                    await self._send_reply(connection, answered, fields.get("id"), drawn)
        except ConnectionClosed:
            pass
        finally:
            self.closed = (int(connection.close_code or ABNORMAL), connection.close_reason or "")
            self._held.clear()
            for task in tuple(self._waiting):
                task.cancel()
            self._connection = None

    async def _send_reply(
        self, connection: ClientConnection, answered: bytes, message_id: object, drawn: frozenset[str]
    ) -> None:
        """Send a reply with the faults that were drawn for it."""
        if "garbage" in drawn:
            junk = garbage(self._dice.random, message_id, self._stale)
            await connection.send(junk.content, text=junk.is_text)
        self._stale.append(answered)
        if "silence" in drawn:
            return
        if "nonsense" in drawn:
            answered = nonsense(self._dice.random, message_id)
        if "huge" in drawn:
            answered = padded(answered, self.faults.padding)
        if "late" in drawn:
            self._later(self.faults.delay, lambda: _send(connection, [answered]))
        elif "out_of_order" in drawn:
            # Held until there are several, or for a moment, and then sent shuffled.
            self._held.append(answered)
            if len(self._held) >= MAX_HELD:
                await self._release(connection)
            elif len(self._held) == 1:
                self._later(HELD, lambda: self._release(connection))
        else:
            await connection.send(answered, text=True)

    def _later(self, seconds: float, send: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            await send()

        task = asyncio.create_task(wait())
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _release(self, connection: ClientConnection) -> None:
        held, self._held = self._held, []
        self._dice.random.shuffle(held)
        await _send(connection, held)


async def _send(connection: ClientConnection, replies: list[bytes]) -> None:
    """Send replies, unless the connection has ended meanwhile."""
    try:
        for answered in replies:
            await connection.send(answered, text=True)
    except ConnectionClosed:
        return
