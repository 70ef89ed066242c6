"""Session: the parts of a running bitburner bridge, and how they are opened.

Cheap to import, because every tool names its type: the parts are imported when a session opens, which is
after the first answer to the client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from bridgehead.mcp import Bridge, Context, Turns
from bridgehead.runtime import directories, durable, logs
from bridgehead.runtime.errors import BridgeError, NotFound
from bridgehead.runtime.timing import Backoff, Clock

from .changes.batches import BATCH, BatchWriter, Journal
from .changes.differences import Difference, Differences, describe_differences
from .changes.file_writer import CHANGED, DIFFERENCES, FileChange, FileWriter, decode_notice
from .changes.history import History
from .changes.last_seen import LastSeen
from .game import paths, timestamps, wire
from .game.connection import GameConnection
from .game.counters import GameCounters
from .game.listener import Listener
from .game.remote import Remote
from .game.sharing import peer_auth
from .game.sharing.ownership import Ownership
from .game.sharing.relay import Relay
from .game.websocket_client import WebSocketClient
from .game.wire import Reply
from .settings import BitburnerSettings

if TYPE_CHECKING:
    from .netscript.search import Index

_DEFINITIONS_FILE = "definitions.d.ts"

NOTICE = "bridgehead/told"
"""Method of the owner's notification with a sentence for the agents of its guests."""


class Session:
    """The parts that tools use, and the notices of changes between them."""

    def __init__(
        self,
        settings: BitburnerSettings,
        connection: GameConnection,
        relay: Relay,
        clock: Clock,
        bridge: Bridge[Session] | None = None,
    ) -> None:
        timeout = settings.rpc_timeout_ms / 1000
        self.settings = settings
        self._clock = clock
        self._bridge = bridge
        """Notifies its clients of changed files; None outside of a server."""
        self.connection = connection
        self.relay = relay
        self.remote = Remote(connection, timeout, clock)
        self.history = History(settings, clock)
        self.differences = Differences(self.history, clock)
        self.last_seen = LastSeen()
        self.writer = FileWriter(
            connection,
            self.remote,
            self.history,
            self.differences,
            relay,
            self.last_seen,
            clock=clock,
            timeout=timeout,
            refuses_newer=settings.refuse_stale_writes,
        )
        self.write_max_bytes = settings.write_max_bytes
        # Each search is a process that may compute for seconds; more of them would starve the machine.
        self.searches = Turns(2)
        # For work that parses scripts: the nodes of one large script take up to 200 MB.
        self.parsing = Turns(2)
        # For calls that keep all files of a server while scripts are parsed. Taken before the files are read:
        # otherwise each call waiting for the parser would hold a whole server.
        self.checks = Turns(4)
        self._index: Index | None = None
        # Held while the index is built, so that concurrent calls build it once.
        self._index_lock = asyncio.Lock()
        self._kept_definitions: str | None = None
        """The definitions as last stored on this machine."""
        self._differing: dict[tuple[str, str], Difference] = {}
        """Files that differ from their last write, until reported to an agent."""
        # Weak, so that an agent's number is dropped with its connection.
        self._agents: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        self._last_agent = 0
        self._background: set[asyncio.Task[None]] = set()
        self.batches = BatchWriter(connection, self.writer, self.last_seen, Journal(settings))
        self.batches.on_unfinished = lambda: self._start(self.batches.take_back_all(self._notify_all))
        connection.on_change.append(self._use_past)
        relay.operations = {**self.writer.operations, BATCH: self.batches.serve}
        self.dropped_versions = 0
        """How many versions were dropped for space, as far as this process was told."""
        self._notices: list[str] = []
        """Added to this process's next answer, whoever gets it."""
        self.writer.on_change.append(self._handle_change)
        if bridge is not None:
            connection.on_change.append(bridge.changed.resources)
        connection.on_change.append(self._check_new_game)
        connection.on_notice.append(self._handle_notice)

    def now(self) -> float:
        """Return the time, in seconds since 1970."""
        return self._clock.now()

    def name_agent(self, ctx: Context[Session]) -> str:
        """Return a name for the calling agent, from this process, its token and its session, if any."""
        caller = ctx.principal or ""
        if not ctx.revision.stateless:
            if ctx.connection not in self._agents:
                self._last_agent += 1
                self._agents[ctx.connection] = self._last_agent
            caller = f"{caller}#{self._agents[ctx.connection]}"
        return f"{self.last_seen.process}/{caller}"

    async def load_index(self) -> Index:
        """Return the indexed definitions of the connected game, or of the last one."""
        from .netscript.search import Index  # lazy: the parser, 12 ms; loaded in the thread

        text, note = await self.load_definitions()
        # Parsing takes a tenth of a second in a thread. Under the lock, concurrent calls share the result;
        # without it, fifty calls after a reconnect would fill every thread with the same work.
        async with self._index_lock:
            if self._index is None or self._index.text != text:
                self._index = await asyncio.to_thread(Index, text)
            self._index.note = note
            return self._index

    async def load_definitions(self) -> tuple[str, str]:
        """Return the definitions, and a note with their age if the game is disconnected.

        They are stored on this machine, so that an agent can search them while no game is connected.
        """
        if self.connection.link is None:

            def read_stored() -> tuple[str, str] | None:
                path = directories.open_state(self.settings, "bitburner") / _DEFINITIONS_FILE
                try:
                    text, moment = durable.read(path).decode(), path.stat().st_mtime
                except (OSError, UnicodeDecodeError):
                    return None
                # Return the index's own string if it is equal: later comparisons are then by identity.
                known = self._index
                text = known.text if known is not None and known.text == text else text
                since = timestamps.format_utc(moment)
                return text, f"No game is connected; these definitions are from {since}."

            stored = await asyncio.to_thread(read_stored)
            if stored is not None:
                return stored
        text = await self.remote.get_definitions()
        if self._kept_definitions != text:
            self._kept_definitions = text

            generation = ""
            with suppress(BridgeError):
                generation = (await self.remote.detect_generation()).partition(" ")[0]

            def store() -> None:
                folder = directories.open_state(self.settings, "bitburner")
                for path in (folder / _DEFINITIONS_FILE, folder / f"definitions-{generation}.d.ts"):
                    with suppress(OSError):  # they matter only for another game, or without one
                        if not path.exists() or durable.read(path) != text.encode():
                            durable.replace(path, text.encode())

            await asyncio.to_thread(store)
        return text, ""

    async def load_index_of(self, generation: str) -> Index:
        """Return the indexed definitions of a generation: kept from a game, or put there by the player."""
        from .netscript.search import Index  # lazy: the parser, 12 ms; loaded in the thread

        def load() -> Index:
            folder = directories.open_state(self.settings, "bitburner")
            kept = {
                path.name.removeprefix("definitions-").removesuffix(".d.ts"): path
                for path in folder.glob("definitions-*.d.ts")
            }
            try:
                return Index(durable.read(kept[generation]).decode())
            except (KeyError, OSError, UnicodeDecodeError):
                raise NotFound(
                    f"There are no definitions of {generation}; there are those of: "
                    f"{', '.join(sorted(kept)) or 'no generation'}.",
                    next_step=f"Connect a game of that version once, or put its NetscriptDefinitions.d.ts at "
                    f"{folder / f'definitions-{generation}.d.ts'}.",
                ) from None

        return await asyncio.to_thread(load)

    def _use_past(self) -> None:
        """Take up the past of the game that has connected; what another one held is not missed in it."""
        past = self.connection.past
        if past != self.history.game:
            self.history.game = past
            self.differences.use_game()
            self._differing = {}
            self.batches.use_game(past)

    def _handle_change(self, change: FileChange) -> None:
        # A file written since then no longer differs.
        self._differing.pop((change.server, change.filename), None)
        if self._bridge is not None:
            self._bridge.changed.resource(paths.make_uri(change.server, change.filename))
            if change.is_listed_anew and change.server == paths.HOME:
                self._bridge.changed.resources()

    def _handle_notice(self, notice: Reply) -> None:
        """Handle a notification from the owner of the shared game."""
        change = decode_notice(notice, CHANGED, FileChange)
        if change is not None:
            self.writer.announce(change, is_ours=False)
        differences = decode_notice(notice, DIFFERENCES, list[Difference])
        if differences is not None:
            self._differing = {
                (difference.server, difference.filename): difference for difference in differences
            }
        text = decode_notice(notice, NOTICE, str)
        if text is not None:
            self._notices.append(text)

    def take_notices(self, agent: str) -> list[str]:
        """Return the notices for an agent's next answer, once."""
        notices = [*self.last_seen.take_notices(agent), *self._notices]
        self._notices = []
        if self._differing:
            notices.append(describe_differences(list(self._differing.values())))
            self.forget_differences()
        return notices

    def forget_differences(self) -> None:
        """Mark the differences as reported; the owner then records the contents that the game holds."""
        reported, self._differing = self._differing, {}
        if reported and self.connection.link is not None and not self.connection.link.is_shared:
            self._start(self.differences.acknowledge(self.remote))

    def _check_new_game(self) -> None:
        """Compare a newly connected game with the files that were written to it; only the owner does it."""
        link = self.connection.link
        if link is None or link.is_shared:
            return

        self.differences.is_checked.clear()

        async def check() -> None:
            try:
                # First: an unfinished batch must not count as a difference.
                await self.batches.take_back_all(self._notify_all)
                differences = await self.differences.check_all(self.remote)
            finally:
                self.differences.is_checked.set()
            self._differing = {
                (difference.server, difference.filename): difference for difference in differences
            }
            if differences:
                self.relay.broadcast(wire.encode_notification(DIFFERENCES, differences))

        self._start(check())

    def _notify_all(self, notice: str) -> None:
        """Notify the agents of this process and of its guests."""
        self._notices.append(notice)
        self.relay.broadcast(wire.encode_notification(NOTICE, notice))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)  # the loop holds tasks only weakly
        task.add_done_callback(self._background.discard)

    async def close(self) -> None:
        """Cancel the background tasks and wait for them."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self.writer.close()
        self.history.close()


@asynccontextmanager
async def open_session(
    settings: BitburnerSettings,
    counters: GameCounters,
    clock: Clock,
    bridge: Bridge[Session] | None = None,
) -> AsyncIterator[Session]:
    """Hold the port that games dial (or dial BITBURNER_RPC_URL) until the block ends."""
    settings.configure_logs()
    logs.logger("bitburner").info("starting", **settings.changes())
    connection = GameConnection(settings, counters, clock)
    relay = Relay(connection, settings.rpc_timeout_ms / 1000)
    session = Session(settings, connection, relay, clock, bridge)
    # Before the port opens: the first game is compared with earlier processes' writes.
    await session.differences.load()

    prover = peer_auth.Prover(peer_auth.load_key(settings), clock)
    backoff = Backoff(settings.reconnect_base_ms / 1000, settings.reconnect_max_ms / 1000)
    connector: WebSocketClient | Ownership
    if settings.rpc_url is not None:
        connector = WebSocketClient(settings, settings.rpc_url, connection, prover, backoff)
    else:
        listener = Listener(settings, connection, relay, prover)
        connector = Ownership(settings, connection, listener, prover, backoff)

    async def keep_connecting() -> None:
        try:
            await connector.run()
        except Exception:  # calls must fail instead of waiting for a game for ever
            logging.getLogger("bridgehead.bitburner").exception("connecting failed")
            connection.report_problem(
                "The bridge cannot connect because of a fault of its own; start it again."
            )
        finally:
            connector.settled.set()

    task = asyncio.get_running_loop().create_task(keep_connecting())
    try:
        # Wait until the role is decided: the first call must be able to say why no game is connected.
        await connector.settled.wait()
        yield session
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await session.close()
