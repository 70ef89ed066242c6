"""Ownership: decide which of this user's bridges holds the port. The others are its guests.

Binding the port is the election: the process that can bind it is the owner, and when it ends, one of the
guests takes over.
"""

from __future__ import annotations

import asyncio
import errno
import random

from bridgehead.runtime import logs
from bridgehead.runtime.timing import Backoff

from ...settings import BitburnerSettings
from .. import setup_steps
from ..connection import GUEST, OWNER, GameConnection
from ..listener import Listener
from .peer_auth import Prover
from .port_probe import ForeignListener, connect_as_guest, relay_url
from .relay import join_shared_game

log = logs.logger("bitburner.ownership")


class Ownership:
    """Holds the port, or shares the game of its owner."""

    def __init__(
        self,
        settings: BitburnerSettings,
        connection: GameConnection,
        listener: Listener,
        prover: Prover,
        backoff: Backoff,
    ) -> None:
        self._settings = settings
        self._connection = connection
        self._listener = listener
        self._prover = prover
        self._backoff = backoff
        self.settled = asyncio.Event()
        """Set once it is known whether the port is ours, shared, or taken by another program."""

    async def run(self) -> None:
        """Be the owner or a guest, until cancelled."""
        attempt = 0
        while True:
            if await self._listen_or_join():
                attempt = 0  # the owner has ended: try to bind at once, the first to do so is the next owner
                continue
            await asyncio.sleep(self._backoff.delay(attempt, random.random))
            attempt += 1

    async def _listen_or_join(self) -> bool:
        """Return once neither is possible; True if this process was a guest."""
        try:
            async with self._listener.listening() as address:
                self._connection.role, self._connection.address, self._connection.problem = (
                    OWNER,
                    str(address),
                    "",
                )
                log.info("listening", address=str(address))
                self.settled.set()
                await asyncio.Event().wait()  # until this task is cancelled
        except OSError as failure:
            if failure.errno == errno.EADDRINUSE:
                return await self._join()
            self._report_problem(f"Cannot listen on {self._settings.listen}: {failure.strerror or failure}.")
        return False

    async def _join(self) -> bool:
        try:
            socket = await connect_as_guest(self._settings, self._prover, relay_url(self._settings))
        except ForeignListener as foreign:
            port = self._settings.listen.port
            self._report_problem(
                f"Port {port} is taken by {foreign}. {setup_steps.describe_port_change(port)}"
            )
            return False
        except OSError:
            return False  # the port was released in the meantime
        self._connection.role, self._connection.problem = GUEST, ""
        log.info("sharing the game of the bridge that holds the port", address=str(self._settings.listen))
        self.settled.set()
        async with socket:
            await join_shared_game(self._connection, socket)
        return True

    def _report_problem(self, problem: str) -> None:
        self._connection.report_problem(problem)
        self.settled.set()
