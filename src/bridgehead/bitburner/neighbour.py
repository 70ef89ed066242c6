"""Neighbour: what holds our port when it is not free: another bridge of this user, or which kind of stranger.

Dialling it as a guest answers the question: only a process that knows this user's key can prove that it is
one of ours.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidMessage, InvalidStatus, InvalidUpgrade, WebSocketException

from . import sockets
from .secret import PROOF
from .sockets import MARK, RELAY_PATH, TIMEOUT

if TYPE_CHECKING:
    from .secret import Prover
    from .settings import BitburnerSettings

_VISIT_SECONDS = 2.0
"""Short, because calls wait to hear what holds the port, and it is on this machine."""


class Stranger(Exception):
    """The port is held by something that is not one of ours; the text says by what kind of thing."""


def relay_url(settings: BitburnerSettings) -> str:
    """Return where the bridge that holds our port shares its game."""
    return f"{'ws' if settings.tls_cert is None else 'wss'}://{settings.listen.near}{RELAY_PATH}"


async def visit(settings: BitburnerSettings, prover: Prover, url: str) -> ClientConnection:
    """Open a guest's connection to a bridge that shares its game; raises `Stranger`, or OSError."""
    claim = prover.claim()
    try:
        socket = await connect(
            url,
            ssl=_unverified() if url.startswith("wss") else None,
            additional_headers={**claim, TIMEOUT: str(settings.rpc_timeout_ms)},
            proxy=None,
            **{**sockets.options(settings), "open_timeout": _VISIT_SECONDS},
        )
    except (WebSocketException, TimeoutError, EOFError, ssl.SSLError) as failure:
        raise Stranger(_kind(failure)) from None
    proof = socket.response.headers.get(PROOF) if socket.response is not None else None
    if not prover.is_owner(claim, proof):
        await socket.close()
        raise Stranger("a WebSocket server that is not a bridge, probably another tool for the game")
    return socket


def _unverified() -> ssl.SSLContext:
    """Trust any certificate: the proof of the key is what counts, and nothing leaves the machine."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _kind(failure: Exception) -> str:
    """Name what answered like this."""
    if isinstance(failure, InvalidStatus):
        headers = failure.response.headers
        if MARK in headers:
            return "a bridge of another user, or of this user with another BRIDGEHEAD_STATE_DIR"
        name = headers.get("Server")
        return f"a web server ({name})" if name else "a web server"
    if isinstance(failure, InvalidUpgrade):
        return "a web server"
    if isinstance(failure, TimeoutError):
        return "a program that accepts connections and says nothing"
    if isinstance(failure, InvalidMessage | EOFError | ssl.SSLError):
        return "a program that does not speak HTTP (or, if it does, not with the same `ws` or `wss`)"
    return f"a program that answers strangely ({failure})"
