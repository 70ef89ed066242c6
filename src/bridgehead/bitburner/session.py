"""Session: what a running bitburner bridge holds open, and how it is opened.

Cheap to import, because the tools name its type; what it is made of is loaded when it opens, which is after
the first answer to the client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from bridgehead.runtime.backoff import Backoff
from bridgehead.runtime.clock import Clock

if TYPE_CHECKING:
    import asyncio
    from contextlib import AbstractAsyncContextManager

    from bridgehead.runtime.metrics import Metrics

    from .changes.backups import Backups
    from .game.dialler import Dialler
    from .game.remote import Remote
    from .game.sharing.ownership import Ownership
    from .game.sharing.relay import Relay
    from .game.switchboard import Switchboard
    from .settings import BitburnerSettings

Announce = Callable[[str, str, bool], None]
"""Tells clients that a file changed: server, name, and whether the list of files changed too."""


class Session:
    """Everything that the tools work with."""

    def __init__(
        self, settings: BitburnerSettings, board: Switchboard, relay: Relay, remote: Remote, backups: Backups
    ) -> None:
        from weakref import WeakValueDictionary

        self.settings = settings
        self.board = board
        self.relay = relay
        self.remote = remote
        self.backups = backups
        self.announce: Announce = lambda *_: None
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def lock_file(self, server: str, filename: str) -> AbstractAsyncContextManager[None]:
        """Wait for one's turn to change a file: what is read and written in it belongs together."""
        import asyncio

        return self._locks.setdefault((server, filename), asyncio.Lock())


@asynccontextmanager
async def open_session(settings: BitburnerSettings, metrics: Metrics, clock: Clock) -> AsyncIterator[Session]:
    """Open the port (or dial), and close everything at the end."""
    import asyncio

    from bridgehead.runtime import logs

    from .changes.backups import Backups
    from .game.remote import Remote
    from .game.sharing.relay import Relay
    from .game.switchboard import Switchboard

    settings.configure_logs()
    logs.logger("bitburner").info("starting", **dict(settings.summary()))
    board = Switchboard(settings, metrics, clock)
    timeout = settings.rpc_timeout_ms / 1000
    relay = Relay(board, timeout)
    connecting = _choose_connector(settings, board, relay, clock)
    task = asyncio.get_running_loop().create_task(_keep_connecting(connecting, board))
    try:
        await connecting.settled.wait()
        yield Session(settings, board, relay, Remote(board, timeout, clock), Backups(settings, clock))
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


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
