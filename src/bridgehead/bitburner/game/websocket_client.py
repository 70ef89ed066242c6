"""WebSocketClient: keep a connection to the address in BITBURNER_RPC_URL, with backoff."""

from __future__ import annotations

import asyncio
import random
from urllib.parse import urlsplit

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from bridgehead.runtime import logs
from bridgehead.runtime.timing import Backoff

from ..settings import Address, BitburnerSettings
from . import sockets
from .connection import GameConnection
from .sharing.peer_auth import Prover
from .sharing.port_probe import ForeignListener, connect_as_guest
from .sharing.relay import join_shared_game
from .sockets import RELAY_PATH

log = logs.logger("bitburner.dialler")


class WebSocketClient:
    """Connects to an address that serves a game, or to a bridge's relay."""

    def __init__(
        self,
        settings: BitburnerSettings,
        url: str,
        connection: GameConnection,
        prover: Prover,
        backoff: Backoff,
    ) -> None:
        self._settings = settings
        self._url = url
        self._connection = connection
        self._prover = prover
        self._backoff = backoff
        self._shown = settings.shown_url
        parts = urlsplit(url)
        self.settled = asyncio.Event()
        """Set from the start: the address may answer late, and start-up does not wait for it."""
        self.settled.set()
        # A relay proves itself by a key that only processes of this user have, so it is on this machine.
        self._is_local = Address(parts.hostname or "", 0).is_loopback
        self._is_relay = self._is_local and parts.path == RELAY_PATH

    async def run(self) -> None:
        """Connect until cancelled, or until RPC_RECONNECT_MAX_ATTEMPTS tries in a row have failed."""
        limit = self._settings.reconnect_max_attempts
        failed = 0
        while not limit or failed < limit:
            failed = 0 if await self._connect_once(failed + 1) else failed + 1
            await asyncio.sleep(self._backoff.delay(max(failed - 1, 0), random.random))
        self._connection.report_problem(
            f"{self._shown} could not be reached in {limit} tries, and dialling was given up; "
            "start the bridge again to dial again."
        )

    async def _connect_once(self, attempt: int) -> bool:
        """Connect and serve the link until it closes; return False if no connection was made."""
        log.info("dialling", url=self._shown, attempt=attempt)
        try:
            if self._is_relay:
                socket = await connect_as_guest(self._settings, self._prover, self._url)
            else:
                options = sockets.make_options()
                if self._is_local:
                    options["proxy"] = None  # the environment's proxy is not for loopback
                socket = await connect(self._url, **options)
        except ForeignListener as foreign:
            self._connection.report_problem(f"What answers at {self._shown} is {foreign}.")
            return False
        except (OSError, WebSocketException, EOFError) as failure:
            reason = str(failure) or type(failure).__name__
            self._connection.report_problem(f"{self._shown} cannot be reached ({reason}).")
            return False
        self._connection.problem = ""
        async with socket:
            if self._is_relay:
                await join_shared_game(self._connection, socket)
            else:
                link = self._connection.make_link(socket)
                self._connection.plug(link, self._shown)
                try:
                    await link.run()
                finally:
                    self._connection.unplug(link)
        return True
