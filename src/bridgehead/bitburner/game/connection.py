"""GameConnection: the current link to a game, the calls that wait for one, and why there is none.

Listener, relay and WebSocket client plug links in and out here; tools use the current link and do not depend
on its origin.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable

from websockets.asyncio.connection import Connection

from bridgehead.runtime import logs
from bridgehead.runtime.timing import Clock

from ..errors import NotConnected
from ..settings import BitburnerSettings
from . import setup_steps, sockets, timestamps
from .counters import GameCounters
from .link import Link
from .wire import Reply

log = logs.logger("bitburner.connection")

_ID_BITS = 50
"""JavaScript numbers are exact up to 53 bits."""
OWNER, GUEST, DIALLER = "owner", "guest", "dialler"
"""Roles of this process, as `connection_status` reports them."""


SIMULATOR = "bridgehead-simulator"
"""User-Agent of the simulated game; a browser cannot set one for a WebSocket."""


class GameConnection:
    """Holds the current link to the game, if there is one."""

    def __init__(self, settings: BitburnerSettings, counters: GameCounters, clock: Clock) -> None:
        self._settings = settings
        self.counters = counters
        self._clock = clock
        self._arrived = asyncio.Event()
        self.link: Link | None = None
        self.since: float | None = None
        """When the current game connected, or the last one disconnected."""
        self.role = DIALLER if settings.rpc_url else OWNER
        self.address = settings.shown_url if settings.rpc_url else str(settings.listen)
        self.game = ""
        """The current game's origin, or the address that was dialled."""
        self.generation = ""
        """The last game's generation; empty until it is detected."""
        self.problem = ""
        """Why no game can reach this process; empty if nothing prevents it."""
        self.refused = ""
        """Advice about the last dial-in that was refused."""
        self.on_change: list[Callable[[], None]] = []
        self.on_notice: list[Callable[[Reply], None]] = []
        """Called with the owner's notifications, except its status, if the game is shared."""
        self.halves: set[str] = set()
        """The characters that stood for lone surrogates in replies; a process outlives its games."""
        self._games = 0
        # Ids continue from one connection to the next and start at random, so that a late reply from an
        # earlier connection or process is never taken for an answer.
        self._ids = itertools.count(random.getrandbits(_ID_BITS))

    def make_link(self, socket: Connection, on_notice: Callable[[Reply], None] | None = None) -> Link:
        """Build a link that counts ignored replies and timeouts."""
        return Link(
            socket,
            self._ids,
            ignored=self.counters.ignored,
            timeouts=self.counters.timeouts,
            max_bytes=sockets.MAX_FRAME_BYTES,
            on_notice=on_notice,
            halves=self.halves,
        )

    def plug(self, link: Link, game: str) -> None:
        """Make a link the current one."""
        if self._games:
            self.counters.reconnects.add()
        self._games += 1
        self.link, self.game, self.problem = link, game, ""
        # A guest's link outlives the owner's game: cached data may be from an earlier game.
        link.memory.clear()
        self._changed("game connected")

    @property
    def past(self) -> str:
        """Whose versions, differences and sync state belong to the game; empty for a real one."""
        return self.game if self.game == SIMULATOR else ""

    def unplug(self, link: Link) -> None:
        """Forget a link, if it is the current one."""
        if self.link is link:
            self.link = None
            self._changed("game disconnected")

    def _changed(self, event: str) -> None:
        self.since = self._clock.now()
        self.counters.is_connected = self.link is not None
        if self.link is None:
            self._arrived.clear()
        else:
            self._arrived.set()
        log.info(event, role=self.role, game=self.game, address=self.address)
        for listener in self.on_change:
            listener()

    def report_problem(self, problem: str) -> None:
        """Record why no game can reach this process; logged when it changes."""
        if problem != self.problem:
            log.warn("no game can reach this process", problem=problem)
        self.problem = problem

    def report_rejection(self, who: str, why: str, advice: str) -> None:
        """Record a refused dial-in and the advice for the player."""
        self.refused = advice
        log.warn("dial-in refused", who=who, why=why)

    async def require_link(self) -> Link:
        """Return the link to the game; wait up to BITBURNER_CONNECT_WAIT_MS for one, or raise.

        Every exchange needs one, so callers look at `link` first: that saves a coroutine.
        """
        if self.link is None:
            await self.wait_for_game(self._settings.connect_wait_ms / 1000)
        if self.link is None:  # none connected, or it disconnected before this call's turn
            raise self.make_not_connected()
        return self.link

    async def wait_for_game(self, seconds: float) -> None:
        """Wait until a game is connected, at most this long."""
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            return

    def make_not_connected(self) -> NotConnected:
        """Build the error with the time of the disconnection and what the player must do."""
        if self.since is None:
            state = "no game has connected to this process yet."
        else:
            ago = timestamps.format_duration(self._clock.now() - self.since)
            state = f"the game went {ago} ago, at {timestamps.format_utc(self.since)}."
        return NotConnected(f"Bitburner disconnected: {state}", next_step=self.describe_next_step())

    def describe_next_step(self) -> str:
        """Describe how to connect, or how to reconnect a game that was connected before."""
        if self.since is not None and not self.problem and self._settings.rpc_url is None:
            return setup_steps.describe_return(self.generation, self.refused)
        return setup_steps.describe_next_step(self._settings, self.address, self.problem, self.refused)
