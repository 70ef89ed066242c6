"""Dialler: connects to the address that BITBURNER_RPC_URL names, again and again, less often each time."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from bridgehead.runtime import logs

from ..settings import Address
from . import sockets
from .sharing.port_probe import ForeignListener, connect_as_guest
from .sharing.relay import join_shared_game
from .sockets import RELAY_PATH

if TYPE_CHECKING:
    from bridgehead.runtime.timing import Backoff

    from ..settings import BitburnerSettings
    from .sharing.peer_auth import Prover
    from .switchboard import Switchboard

log = logs.logger("bitburner.dialler")


class Dialler:
    """Keeps one connection to an address."""

    def __init__(
        self, settings: BitburnerSettings, url: str, board: Switchboard, prover: Prover, backoff: Backoff
    ) -> None:
        self._settings = settings
        self._url = url
        self._board = board
        self._prover = prover
        self._backoff = backoff
        self._shown = settings.shown_url
        parts = urlsplit(url)
        self.settled = asyncio.Event()
        """Set from the start: what is dialled may answer late, and that is no reason to wait."""
        self.settled.set()
        self._is_local = Address(parts.hostname or "", 0).is_loopback
        self._is_relay = self._is_local and parts.path == RELAY_PATH

    async def run(self) -> None:
        """Dial until told to stop, or until so many tries in a row have failed."""
        most = self._settings.reconnect_max_attempts
        failed = 0
        while not most or failed < most:
            failed = 0 if await self._dial_once(failed + 1) else failed + 1
            await asyncio.sleep(self._backoff.delay(max(failed - 1, 0), random.random))
        self._board.report_problem(
            f"{self._shown} could not be reached in {most} tries, and dialling was given up; "
            "start the bridge again to dial again."
        )

    async def _dial_once(self, attempt: int) -> bool:
        """Make one try; true where it came to a connection, which has ended by then."""
        log.info("dialling", url=self._shown, attempt=attempt)
        try:
            socket = await self._connect()
        except ForeignListener as foreign:
            self._board.report_problem(f"What answers at {self._shown} is {foreign}.")
            return False
        except (OSError, WebSocketException, EOFError) as failure:
            reason = str(failure) or type(failure).__name__
            self._board.report_problem(f"{self._shown} cannot be reached ({reason}).")
            return False
        self._board.problem = ""
        async with socket:
            await (join_shared_game(self._board, socket) if self._is_relay else self._serve_link(socket))
        return True

    async def _connect(self) -> ClientConnection:
        if self._is_relay:
            return await connect_as_guest(self._settings, self._prover, self._url)
        options = sockets.make_options(self._settings)
        if self._is_local:
            options["proxy"] = None
        return await connect(self._url, **options)

    async def _serve_link(self, socket: ClientConnection) -> None:
        link = self._board.make_link(socket)
        self._board.plug(link, self._shown)
        try:
            await link.run()
        finally:
            self._board.unplug(link)
