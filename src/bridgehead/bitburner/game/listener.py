"""Listener: the port that the game dials. Admits one game at a time, and guests of the same user.

Origin and proof are checked before the WebSocket opens. A second game is accepted just long enough to get the
reason of its refusal: a page cannot read why an opening handshake failed.
"""

from __future__ import annotations

import asyncio
import http
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from websockets.asyncio.server import ServerConnection, serve

from bridgehead.runtime import logs

from ..settings import ANY_ORIGIN, ANY_PORT, NO_ORIGIN, Address, BitburnerSettings
from . import setup_steps, sockets
from .connection import SIMULATOR, GameConnection
from .sharing.peer_auth import NONCE, PROOF, Prover
from .sharing.relay import Relay
from .sockets import MARK, RELAY_PATH

if TYPE_CHECKING:
    from websockets.http11 import Request, Response


log = logs.logger("bitburner.listener")

UNADMITTED_BYTES = 64 * 1024
"""Limit of a message before admission: anybody can connect and send one without end, and a game sends nothing
before it is asked."""
MAX_UNADMITTED = 32
"""Limit of connections before admission; one more evicts the oldest. Each may hold 16 unread messages."""
_Unadmitted = dict[ServerConnection, asyncio.Task[Any] | None]
"""Connections that are not admitted yet, the oldest first; with their task once it waits for admission."""
TRY_LATER = 1013
GOING_AWAY = 1001
SECOND_GAME = "Another Bitburner game is connected here already. Disconnect it first, then press Connect."
REPLACED = "This connection did not answer, and another game has taken its place."


class Listener:
    """Accepts games and guests on one address."""

    def __init__(
        self, settings: BitburnerSettings, connection: GameConnection, relay: Relay, prover: Prover
    ) -> None:
        self._settings = settings
        self._connection = connection
        self._relay = relay
        self._prover = prover
        # Held while a new game is admitted, which may include a ping of the current one. Otherwise two new
        # games could both find it dead, and both be plugged in.
        self._admission = asyncio.Lock()
        self._unadmitted: _Unadmitted = {}
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Address]:
        """Hold the port; raise OSError if it cannot be bound."""
        host, port = self._settings.listen.host, self._settings.listen.port
        server = await serve(
            self._handle_connection,
            host,
            port,
            ssl=self._settings.tls(),
            process_request=self._authorize,
            process_response=self._add_headers,
            server_header="bridgehead",
            create_connection=_count_connections(self._unadmitted),
            **(sockets.make_options() | {"max_size": UNADMITTED_BYTES}),
        )
        try:
            bound = next(iter(server.sockets)).getsockname()
            yield Address(host, bound[1])
        finally:
            server.close(code=GOING_AWAY, reason="The bridge has ended.")
            await server.wait_closed()

    def _authorize(self, socket: ServerConnection, request: Request) -> Response | None:
        """Refuse foreign origins, and guests without a proof of the key."""
        origin = request.headers.get("Origin")
        if request.path == RELAY_PATH:
            # A browser always sends an Origin (RFC 6455, 4.1), so no page can pose as a guest.
            if origin is None and self._prover.verify_claim(request.headers):
                return None
            return socket.respond(
                http.HTTPStatus.UNAUTHORIZED, "This path is for processes of the same user.\n"
            )
        if is_allowed_origin(origin, self._settings.allowed_origins):
            return None
        advice = setup_steps.describe_foreign_origin(str(origin))
        self._connection.report_rejection(
            str(origin), "this origin is not in BITBURNER_ALLOWED_ORIGINS", advice
        )
        return socket.respond(http.HTTPStatus.FORBIDDEN, f"{advice}\n")

    def _add_headers(self, _: ServerConnection, request: Request, response: Response) -> None:
        """Mark the response, so that another bridge that finds the port taken recognizes this one."""
        response.headers[MARK] = "bitburner"
        if request.path == RELAY_PATH and response.status_code == http.HTTPStatus.SWITCHING_PROTOCOLS:
            response.headers[PROOF] = self._prover.prove_ownership(request.headers[NONCE])

    async def _handle_connection(self, socket: ServerConnection) -> None:
        if socket not in self._unadmitted:
            return  # it disconnected, or was evicted, before its turn
        self._unadmitted[socket] = asyncio.current_task()
        request = socket.request
        if request is not None and request.path == RELAY_PATH:
            self._admit(socket)
            await self._relay.serve(socket, request.headers)
            return
        headers = {} if request is None else request.headers
        origin = describe_origin(headers.get("Origin"))
        if headers.get("User-Agent") == SIMULATOR:
            origin = SIMULATOR
        async with self._admission:
            current = self._connection.link
            if current is not None:
                if await current.is_alive(sockets.PING_TIMEOUT_SECONDS):
                    self._connection.report_rejection(origin, "another game is connected and answers", "")
                    await socket.close(TRY_LATER, SECOND_GAME)
                    return
                # A page that vanished without closing its socket: the connection can stay half open for
                # minutes.
                log.info("game taken for dead")
                self._connection.unplug(current)
                current.fail_pending()
                closing = asyncio.get_running_loop().create_task(current.close(GOING_AWAY, REPLACED))
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
            self._admit(socket)
            link = self._connection.make_link(socket)
            self._connection.plug(link, origin)
        try:
            await link.run()
        finally:
            self._connection.unplug(link)

    def _admit(self, socket: ServerConnection) -> None:
        """Accept messages of the usual size from now on."""
        del self._unadmitted[socket]
        socket.protocol.max_message_size = sockets.make_options()["max_size"]


def _count_connections(unadmitted: _Unadmitted) -> type[ServerConnection]:
    """Return a connection class that keeps `unadmitted` up to date, and evicts the oldest at the limit."""

    def forget(connection: ServerConnection) -> None:
        # A task still waiting for admission would keep the messages of a closed connection in memory.
        if (waiting := unadmitted.pop(connection, None)) is not None:
            waiting.cancel()

    class Connection(ServerConnection):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            unadmitted[self] = None
            if len(unadmitted) > MAX_UNADMITTED:
                oldest = next(iter(unadmitted))
                oldest.transport.abort()
                forget(oldest)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            forget(self)

    return Connection


def is_allowed_origin(origin: str | None, allowed: tuple[str, ...]) -> bool:
    """Return whether a dial-in with this Origin header (None: without one) is accepted."""
    if ANY_ORIGIN in allowed:
        return True
    if origin is None:
        return NO_ORIGIN in allowed
    origin = origin.lower()
    for entry in map(str.lower, allowed):
        if origin in (entry, entry.rstrip("/")):
            return True
        base = entry.removesuffix(ANY_PORT)
        rest = origin.removeprefix(base)
        # The rest must be a whole port: "http://localhost:*" does not admit "http://localhost.evil.com".
        is_port = rest == "" or (rest[0] == ":" and rest[1:].isdecimal())
        if entry.endswith(ANY_PORT) and origin.startswith(base) and is_port:
            return True
    return False


def describe_origin(origin: str | None) -> str:
    """Describe the origin of a dial-in."""
    return origin or "a program without an origin (as the desktop build does)"
