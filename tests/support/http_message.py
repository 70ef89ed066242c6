"""A request that no server made, for what only looks at requests."""

from bridgehead.mcp.http.message import HeaderPairs, Request, ResponseStream


class LooseRequest(Request):
    """A request without a body, and without a client that could be answered."""

    async def read(self) -> bytes:
        return b""

    async def open_stream(self, status: int, headers: HeaderPairs) -> ResponseStream:
        raise NotImplementedError


def make_request(method: str, path: str, pairs: HeaderPairs = ()) -> Request:
    """Make a request."""
    return LooseRequest(method, path.encode(), path, b"", pairs)
