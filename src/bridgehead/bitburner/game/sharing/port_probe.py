"""Neighbour: what holds our port when it is not free: another bridge of this user, or which kind of foreign.

Dialling it as a guest answers the question: only a process that knows this user's key can prove that it is
one of ours.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidMessage, InvalidStatus, InvalidUpgrade, WebSocketException

from .. import sockets
from ..sockets import MARK, RELAY_PATH, TIMEOUT
from .peer_auth import PROOF

if TYPE_CHECKING:
    from ...settings import BitburnerSettings
    from .peer_auth import Prover

_GUEST_SECONDS = 2.0
"""Short, because calls wait to hear what holds the port, and it is on this machine."""


class ForeignListener(Exception):
    """The port is held by something that is not one of ours; the text says by what kind of thing."""


def relay_url(settings: BitburnerSettings) -> str:
    """Return where the bridge that holds our port shares its game."""
    return f"{'ws' if settings.tls_cert is None else 'wss'}://{settings.listen.near}{RELAY_PATH}"


async def connect_as_guest(settings: BitburnerSettings, prover: Prover, url: str) -> ClientConnection:
    """Open a guest's connection to a bridge that shares its game; raises `ForeignListener`, or OSError."""
    claim = prover.make_claim()
    try:
        socket = await connect(
            url,
            ssl=_trust_any_certificate() if url.startswith("wss") else None,
            additional_headers={**claim, TIMEOUT: str(settings.rpc_timeout_ms)},
            proxy=None,
            **{**sockets.make_options(settings), "open_timeout": _GUEST_SECONDS},
        )
    except (WebSocketException, TimeoutError, EOFError, ssl.SSLError) as failure:
        raise ForeignListener(_describe_listener(failure)) from None
    proof = socket.response.headers.get(PROOF) if socket.response is not None else None
    if not prover.verify_owner(claim, proof):
        await socket.close()
        raise ForeignListener("a WebSocket server that is not a bridge, probably another tool for the game")
    return socket


def _trust_any_certificate() -> ssl.SSLContext:
    """Trust any certificate: the proof of the key is what counts, and nothing leaves the machine."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _describe_listener(failure: Exception) -> str:
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
