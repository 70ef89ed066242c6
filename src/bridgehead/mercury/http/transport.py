"""Transport: what the API's client needs of HTTP, and what can go wrong with it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct

ACCEPT = "application/json, text/event-stream"
"""What every request asks for."""


class ConnectFailed(Exception):
    """There is no connection, so nothing was sent."""


class NotProcessed(ConnectFailed):
    """The other side says that it did nothing with a request, which can be sent again."""


class ConnectionBroken(Exception):
    """The connection broke while a request was under way."""


class Outgoing(Struct, frozen=True):
    """A request as it goes out."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Response(Protocol):
    """An answer whose head has come."""

    @property
    def status(self) -> int:
        """The status."""

    def header(self, name: str) -> str | None:
        """Give the value of a header; the name is in lower case."""

    async def read(self, seconds: float) -> bytes:
        """Give what has come of the body, waiting this long for something; nothing is the end.

        Raises `ConnectionBroken` and `TimeoutError`.
        """


class Transport(Protocol):
    """A pool of connections to one API."""

    def request(
        self, method: str, path: str, headers: dict[str, str], body: bytes, seconds: float
    ) -> AbstractAsyncContextManager[Response]:
        """Send a request; entering waits for the head of the answer, leaving early ends the request.

        Raises `ConnectFailed` and `ConnectionBroken`.
        """

    async def close(self) -> None:
        """Let go of all connections."""
