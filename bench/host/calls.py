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
    """One tool at one path, and how a right answer to it is told."""

    path: str
    tool: str
    arguments: bytes
    proof: bytes = b""
    """What a right answer has in it; nothing where it says the number of its call, as the arguments do."""

    @property
    def _fields(self) -> bytes:
        return self.arguments if not self.proof else self.arguments.replace(b"%", b"%%")

    def is_right(self, answer: bytes, number: int) -> bool:
        """Tell whether an answer is that to this call, and what it should be."""
        told = answer.count(b"%d" % number) >= (1 if self.proof else 2)
        return told and self.proof in answer and b'"isError":true' not in answer

    def template(self, port: int, era: str, headers: bytes) -> bytes:
        """Write the request, to be filled in with `filled`."""
        meta = _META if era == STATELESS else b""
        body = _BODY % (meta, self.tool.encode(), self._fields)
        own = b""
        if era == STATELESS:
            name = self.tool.encode()
            own = b"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: %s\r\n" % name
        length = len(self.filled(body, 10**NUMBER - 1))
        head = _HEAD % (self.path.encode(), port, headers.replace(b"%", b"%%"), own, length)
        return head + body

    def filled(self, template: bytes, number: int) -> bytes:
        """Put the number of a call into a request."""
        return template % (number if self.proof else (number, number))


ECHO = (
    Call("/mcp", "echo", b'{"text":"call %d"}'),
    Call("/mcp", "add", b'{"a":%d,"b":0}'),
    Call("/mcp", "later", b'{"text":"call %d"}'),
)
"""The three tools that the servers have whose rates are compared."""

_ASK = b'{"messages":[{"role":"user","content":"hello"}],"max_tokens":16}'
PRODUCT = (
    Call("/aoc/mcp", "fetch_instruction", b'{"day":1}', b"Count the gulls."),
    Call("/aoc/mcp", "speed_leaderboard", b"{}", b"gpt4"),
    Call("/mercury/mcp", "mercury_chat_completion", _ASK, b"completion_tokens"),
    Call("/mercury/mcp", "mercury_list_models", b"{}", b"mercury"),
    Call("/mcp", "fetch_instruction", b'{"day":1}', b"Count the gulls."),
    Call("/mcp", "mercury_chat_completion", _ASK, b"completion_tokens"),
    Call("/bitburner/mcp", "read_file", b'{"filename":"hello.js"}', b"tprint"),
    Call("/bitburner/mcp", "list_files", b"{}", b"hello.js"),
)
"""Tools of all three bridges, at their own paths and at the shared one."""
MIXES = {"echo": ECHO, "product": PRODUCT}


INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"bench","version":"1.0.0"}}}'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


def post(path: str, port: int, headers: bytes, body: bytes) -> bytes:
    """Write any other POST."""
    return _HEAD % (path.encode(), port, headers, b"", len(body)) + body
