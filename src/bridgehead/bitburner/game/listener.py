"""Listener: the port that the game dials. Lets in one game at a time, and guests of the same user.

Who may come in is decided before the WebSocket is opened; a second game is let in just far enough to be told
why it has to go, because a page never sees why an opening was refused.
"""

from __future__ import annotations

import asyncio
import http
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from websockets.asyncio.server import ServerConnection, serve

from bridgehead.runtime import logs

from ..settings import ANY_ORIGIN, NO_ORIGIN, Address
from . import setup_steps, sockets
from .link import Link
from .sharing.peer_auth import NONCE, PROOF
from .sockets import MARK, RELAY_PATH

if TYPE_CHECKING:
    from websockets.http11 import Request, Response

    from ..settings import BitburnerSettings
    from .sharing.peer_auth import Prover
    from .sharing.relay import Relay
    from .switchboard import Switchboard

log = logs.logger("bitburner.listener")

TRY_LATER = 1013
GOING_AWAY = 1001
SECOND_GAME = "Another Bitburner game is connected here already. Disconnect it first, then press Connect."
REPLACED = "This connection did not answer, and another game has taken its place."


class Listener:
    """Takes dial-ins on one address."""

    def __init__(self, settings: BitburnerSettings, board: Switchboard, relay: Relay, prover: Prover) -> None:
        self._settings = settings
        self._board = board
        self._relay = relay
        self._prover = prover
        self._admission = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Address]:
        """Hold the port; raises OSError where it cannot be had."""
        host, port = self._settings.listen.host, self._settings.listen.port
        server = await serve(
            self._handle_connection,
            host,
            port,
            ssl=self._settings.tls(),
            process_request=self._authorize,
            process_response=self._add_headers,
            server_header="bridgehead",
            **sockets.make_options(self._settings),
        )
        try:
            bound = next(iter(server.sockets)).getsockname()
            yield Address(host, bound[1])
        finally:
            server.close(code=GOING_AWAY, reason="The bridge has ended.")
            await server.wait_closed()

    # --- the door ------------------------------------------------------------------------------------------

    def _authorize(self, connection: ServerConnection, request: Request) -> Response | None:
        """Refuse who may not come in."""
        origin = request.headers.get("Origin")
        if request.path == RELAY_PATH:
            if origin is None and self._prover.verify_claim(request.headers):
                return None
            return connection.respond(
                http.HTTPStatus.UNAUTHORIZED, "This path is for processes of the same user.\n"
            )
        if is_allowed_origin(origin, self._settings.allowed_origins):
            return None
        advice = setup_steps.describe_foreign_origin(str(origin))
        self._board.report_rejection(str(origin), "this origin is not in BITBURNER_ALLOWED_ORIGINS", advice)
        return connection.respond(http.HTTPStatus.FORBIDDEN, f"{advice}\n")

    def _add_headers(self, _: ServerConnection, request: Request, response: Response) -> None:
        """Say who is answering, so that another bridge that finds the port taken knows by whom."""
        response.headers[MARK] = "bitburner"
        if request.path == RELAY_PATH and response.status_code == http.HTTPStatus.SWITCHING_PROTOCOLS:
            response.headers[PROOF] = self._prover.prove_ownership(request.headers[NONCE])

    # --- inside --------------------------------------------------------------------------------------------

    async def _handle_connection(self, socket: ServerConnection) -> None:
        request = socket.request
        if request is not None and request.path == RELAY_PATH:
            await self._relay.serve(socket, request.headers)
        else:
            origin = None if request is None else request.headers.get("Origin")
            await self._serve_game(socket, describe_origin(origin))

    async def _serve_game(self, socket: ServerConnection, who: str) -> None:
        async with self._admission:
            if not await self._can_admit():
                self._board.report_rejection(who, "another game is connected and answers", "")
                await socket.close(TRY_LATER, SECOND_GAME)
                return
            link = self._board.make_link(socket)
            self._board.plug(link, who)
        try:
            await link.run()
        finally:
            self._board.unplug(link)

    async def _can_admit(self) -> bool:
        """Tell whether a newcomer may come in; a game that does not answer in time is shown out."""
        current = self._board.link
        if current is None:
            return True
        if await current.is_alive(self._settings.ping_timeout_ms / 1000):
            return False
        log.info("game taken for dead")
        self._board.unplug(current)
        current.fail_pending()
        self._close_in_background(current)
        return True

    def _close_in_background(self, link: Link) -> None:
        farewell = asyncio.get_running_loop().create_task(link.close(GOING_AWAY, REPLACED))
        self._closing.add(farewell)
        farewell.add_done_callback(self._closing.discard)


_ANY_PORT = ":*"


def is_allowed_origin(origin: str | None, allowed: tuple[str, ...]) -> bool:
    """Tell whether a dial-in with this Origin header (None: without one) is let in."""
    if ANY_ORIGIN in allowed:
        return True
    if origin is None:
        return NO_ORIGIN in allowed
    return any(_matches_entry(origin.lower(), entry.lower()) for entry in allowed)


def _matches_entry(origin: str, entry: str) -> bool:
    if not entry.endswith(_ANY_PORT):
        return origin == entry.rstrip("/") or origin == entry
    base = entry.removesuffix(_ANY_PORT)
    rest = origin.removeprefix(base)
    return origin.startswith(base) and (rest == "" or (rest[0] == ":" and rest[1:].isdecimal()))


def describe_origin(origin: str | None) -> str:
    """Name where a dial-in came from."""
    return origin or "a program without an origin (as the desktop build does)"
