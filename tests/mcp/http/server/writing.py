"""Requests as they are on the wire, written by hand."""

from tests.support.http_client import Headers, Response
from tests.support.http_server import JSON_POST, Server, mirrored
from tests.support.messages import call, encode, stateless


def wire(server: Server, body: bytes, headers: Headers | None = None) -> bytes:
    """Write a whole POST."""
    full: Headers = {**JSON_POST, "Content-Length": str(len(body)), **(headers or {})}
    return server.http.head("POST", "/mcp", full) + body


def wired_call(server: Server, tool: str, number: int, arguments: dict[str, object] | None = None) -> bytes:
    """Write a stateless call."""
    message = stateless("tools/call", call(tool, arguments), number)
    server.checker.note_requests(message)
    return wire(server, encode(message), mirrored(message))


async def following(response: Response) -> Response:
    """Read the next response of the same connection."""
    await response.body()
    again = Response(response._reader, response._writer)  # noqa: SLF001  (one connection, several responses)
    await again.begin()
    return again
