"""Port probe: find out what holds our port: another bridge of this user, or some other program.

Connecting as a guest answers it: only a process that knows this user's key can prove that it is one of ours.
"""

from __future__ import annotations

import asyncio
import ssl

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidMessage, InvalidStatus, InvalidUpgrade, WebSocketException

from ...settings import BitburnerSettings
from .. import sockets
from ..sockets import MARK, RELAY_PATH, TIMEOUT
from .peer_auth import PROOF, Prover

_GUEST_SECONDS = 2.0
"""Short, because calls wait for the result, and the peer is on this machine."""


_MAX_READ = 4096


class ForeignListener(Exception):
    """The port is held by a program that is not one of ours; the text describes it."""


def relay_url(settings: BitburnerSettings) -> str:
    """Return the relay's address of the bridge that holds our port."""
    return f"{'ws' if settings.tls_cert is None else 'wss'}://{settings.listen.near}{RELAY_PATH}"


async def connect_as_guest(settings: BitburnerSettings, prover: Prover, url: str) -> ClientConnection:
    """Connect as a guest to a bridge that shares its game; raises `ForeignListener` or OSError."""
    claim = prover.make_claim()
    try:
        socket = await connect(
            url,
            ssl=_trust_any_certificate() if url.startswith("wss") else None,
            additional_headers={**claim, TIMEOUT: str(settings.rpc_timeout_ms)},
            # The environment's proxy is not for loopback.
            proxy=None,
            **{**sockets.make_options(), "open_timeout": _GUEST_SECONDS},
        )
    except (WebSocketException, TimeoutError, EOFError, ssl.SSLError) as failure:
        raise ForeignListener(await _find_web_server(settings) or _describe_listener(failure)) from None
    proof = socket.response.headers.get(PROOF) if socket.response is not None else None
    if not prover.verify_owner(claim, proof):
        await socket.close()
        raise ForeignListener("a WebSocket server that is not a bridge, probably another tool for the game")
    return socket


def _trust_any_certificate() -> ssl.SSLContext:
    """Accept any certificate: the proof of the key authenticates, and nothing leaves this machine."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _find_web_server(settings: BitburnerSettings) -> str:
    """Send a plain HTTP request; return a description of a web server that answers, empty for other programs.

    The WebSocket library rejects HTTP/1.0, which simple servers speak, without looking at the response.
    """
    address = settings.listen.near
    try:
        async with asyncio.timeout(_GUEST_SECONDS):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            try:
                writer.write(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
                await writer.drain()
                said = await reader.read(_MAX_READ)
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return ""
    head, *fields = said.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)
    }
    if not head.startswith("HTTP/") or MARK.lower() in headers:
        return ""
    return f"a web server ({headers['server']})" if headers.get("server") else "a web server"


def _describe_listener(failure: Exception) -> str:
    """Describe the program behind a failed handshake."""
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
