"""Session: what a running bitburner bridge holds open, and how it is opened.

Cheap to import, because the tools name its type; what it is made of is loaded when it opens, which is after
the first answer to the client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from bridgehead.runtime.timing import Backoff, Clock

if TYPE_CHECKING:
    import asyncio

    from .changes.changing import Step
    from .changes.history import History
    from .changes.shared import Changes
    from .game.counters import GameCounters
    from .game.dialler import Dialler
    from .game.remote import Remote
    from .game.sharing.ownership import Ownership
    from .game.sharing.relay import Relay
    from .game.switchboard import Switchboard
    from .game.wire import Reply
    from .netscript.search import Index
    from .settings import BitburnerSettings

Announce = Callable[[str, str, bool], None]
"""Tells clients that a file changed: server, name, and whether the list of files changed too."""


class Session:
    """Everything that the tools work with."""

    def __init__(
        self,
        settings: BitburnerSettings,
        board: Switchboard,
        relay: Relay,
        remote: Remote,
        history: History,
        changes: Changes,
        *,
        clock: Clock,
    ) -> None:
        import asyncio

        self.settings = settings
        self._clock = clock
        self.board = board
        self.relay = relay
        self.remote = remote
        self.history = history
        self.changes = changes
        self.announce: Announce = lambda *_: None
        self.on_step: list[Callable[[tuple[str, str]], None]] = []
        """Who else hears of each file that is changed: server and path."""
        self.index: Index | None = None
        self.index_lock = asyncio.Lock()
        self.kept_definitions: str | None = None
        """The definitions as they were last kept on this machine."""
        self._notice = ""
        self._background: set[asyncio.Task[None]] = set()
        board.on_change.append(self._check_new_game)
        board.on_notice.append(self._take_notice)

    def now(self) -> float:
        """Return the time, in seconds since 1970."""
        return self._clock.now()

    def take_step(self, step: Step) -> None:
        """Take in a change that was made here: clients and the other processes hear of it."""
        from .changes.shared import encode_step

        self._note_step(step)
        self.relay.broadcast(encode_step(step))

    def _note_step(self, step: Step) -> None:
        self.changes.differences.note_step(step)
        self.announce(step.server, step.filename, step.is_listed_anew)
        for listener in self.on_step:
            listener((step.server, step.filename))

    def _take_notice(self, notice: Reply) -> None:
        """Take in a change that the owner of the shared game tells of."""
        from .changes.differences import describe_differences
        from .changes.shared import decode_differences, decode_step

        step = decode_step(notice)
        if step is not None:
            self._note_step(step)
        self._notice = describe_differences(decode_differences(notice)) or self._notice

    def take_notice(self) -> str:
        """Return what an agent should hear with its next answer, once."""
        notice, self._notice = self._notice, ""
        if notice and self.board.link is not None and not self.board.link.is_shared:
            self._begin(self.changes.differences.acknowledge(self.remote))
        return notice

    def _check_new_game(self) -> None:
        """Let a game that has just connected be compared with what was written; the owner does it for all."""
        link = self.board.link
        if link is not None and not link.is_shared:
            self._begin(self._check())

    async def _check(self) -> None:
        from .changes.differences import describe_differences
        from .changes.shared import encode_differences

        found = await self.changes.differences.check_all(self.remote)
        self._notice = describe_differences(found)
        if found:
            self.relay.broadcast(encode_differences(found))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        import asyncio

        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def close(self) -> None:
        """End what runs in the background."""
        import asyncio

        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)


@asynccontextmanager
async def open_session(
    settings: BitburnerSettings, counters: GameCounters, clock: Clock
) -> AsyncIterator[Session]:
    """Open the port (or dial), and close everything at the end."""
    import asyncio

    from bridgehead.runtime import logs

    from .game.sharing.relay import Relay
    from .game.switchboard import Switchboard

    settings.configure_logs()
    logs.logger("bitburner").info("starting", **settings.changes())
    board = Switchboard(settings, counters, clock)
    relay = Relay(board, settings.rpc_timeout_ms / 1000)
    session = _make_session(settings, board, relay, clock)
    await session.changes.differences.load()
    connecting = _choose_connector(settings, board, relay, clock)
    task = asyncio.get_running_loop().create_task(_keep_connecting(connecting, board))
    try:
        await connecting.settled.wait()
        yield session
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await session.close()


def _make_session(settings: BitburnerSettings, board: Switchboard, relay: Relay, clock: Clock) -> Session:
    from .changes.changing import Changer
    from .changes.differences import Differences
    from .changes.history import History
    from .changes.shared import Changes
    from .game.remote import Remote

    timeout = settings.rpc_timeout_ms / 1000
    remote = Remote(board, timeout, clock)
    history = History(settings, clock)
    changer = Changer(remote, history, clock)
    changes = Changes(board, remote, changer, Differences(history, clock), timeout)
    relay.operations = changes.operations
    session = Session(settings, board, relay, remote, history, changes, clock=clock)
    changer.on_step.append(session.take_step)
    return session


def _choose_connector(
    settings: BitburnerSettings, board: Switchboard, relay: Relay, clock: Clock
) -> Dialler | Ownership:
    """Choose how a game is come by: dialling an address, or holding the port that games dial."""
    from .game.dialler import Dialler
    from .game.listener import Listener
    from .game.sharing import peer_auth
    from .game.sharing.ownership import Ownership

    prover = peer_auth.Prover(peer_auth.load_key(settings), clock)
    backoff = Backoff(settings.reconnect_base_ms / 1000, settings.reconnect_max_ms / 1000)
    if settings.rpc_url is not None:
        return Dialler(settings, settings.rpc_url, board, prover, backoff)
    return Ownership(settings, board, Listener(settings, board, relay, prover), prover, backoff)


async def _keep_connecting(connecting: Dialler | Ownership, board: Switchboard) -> None:
    """Connect for as long as the session lasts; a bug in it is logged, and told to whoever calls a tool."""
    from bridgehead.mcp.lazy_imports import logging

    try:
        await connecting.run()
    except Exception as bug:  # noqa: BLE001 - whatever it is, no call may wait for a game in vain
        logging.getLogger("bridgehead.bitburner").error("connecting failed", exc_info=bug)
        board.report_problem("The bridge cannot connect because of a fault of its own; start it again.")
    finally:
        connecting.settled.set()
