"""The calls that the load client makes: for each tool its request, and how a right answer is told."""

from dataclasses import dataclass

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"

_META = (
    b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},'
    b'"io.modelcontextprotocol/clientCapabilities":{}},'
)
_BODY = b'{"jsonrpc":"2.0","id":%%d,"method":"tools/call","params":{%s"name":"%s","arguments":%s}}'
_HEAD = (
    b"POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
    b"Accept: application/json, text/event-stream\r\n%s%sContent-Length: %d\r\n\r\n"
)
NUMBER = 7
"""Digits of every number in a call, so that all calls of a kind have the same length."""


@dataclass(frozen=True)
class Call:
    """One tool at one path, with arguments that name the number of the call."""

    path: str
    tool: str
    arguments: bytes
    """With `%d` once, for the number of the call."""

    def template(self, port: int, era: str, headers: bytes) -> bytes:
        """Write the request, to be filled in with the number twice."""
        meta = _META if era == STATELESS else b""
        body = _BODY % (meta, self.tool.encode(), self.arguments)
        own = b""
        if era == STATELESS:
            name = self.tool.encode()
            own = b"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: %s\r\n" % name
        length = len(body % (10**NUMBER - 1, 10**NUMBER - 1))
        head = _HEAD % (self.path.encode(), port, headers.replace(b"%", b"%%"), own, length)
        return head + body


def tools_of(path: str, prefix: str = "") -> list[Call]:
    """Give the three tools that every server in the bench has."""
    return [
        Call(path, f"{prefix}echo", b'{"text":"call %d"}'),
        Call(path, f"{prefix}add", b'{"a":%d,"b":0}'),
        Call(path, f"{prefix}later", b'{"text":"call %d"}'),
    ]


INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"bench","version":"1.0.0"}}}'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


def post(path: str, port: int, headers: bytes, body: bytes) -> bytes:
    """Write any other POST."""
    return _HEAD % (path.encode(), port, headers, b"", len(body)) + body
