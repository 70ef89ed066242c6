"""Sharding: sends each request of a session to the process that has the session.

A session's id begins with the number of its worker, or with the name of its process where there are several
hosts. What belongs to no session (all of the stateless era, and every `initialize`) is answered by whichever
process the connection came to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from bridgehead.mcp import Limits
from bridgehead.mcp.http.guard import read_body
from bridgehead.mcp.http.message import Handled, Request, Response, ResponseStream
from bridgehead.mcp.http.rejection import Rejection
from bridgehead.runtime.stores import StoreUnavailable

from ..auth.rejection import HostRejection
from .forwarding import WorkerGone

if TYPE_CHECKING:
    from ..app import HostApplication

SESSION = b"mcp-session-id"
_QUERY = b"session_id="
_RETRY = ((b"retry-after", b"1"),)


class Fleet(Protocol):
    """The processes that sessions are in."""

    def owner_of(self, session: bytes, /) -> Any:
        """Return the process that has a session; None where that is us, or nobody."""

    async def forward(self, owner: Any, request: Request, body: bytes, /) -> ResponseStream:
        """Let another process answer. Raises WorkerGone, and StoreUnavailable where it cannot be found."""


class ShardedApplication:
    """One process's application, which knows the other processes."""

    def __init__(self, app: HostApplication, fleet: Fleet, limits: Limits) -> None:
        self._app = app
        self._fleet = fleet
        self._limits = limits

    def __call__(self, request: Request) -> Handled:
        """Answer a request here, or forward it."""
        session = request.headers.get(SESSION)
        if session is None and request.query.startswith(_QUERY):
            session = request.query[len(_QUERY) :]
        owner = None if session is None else self._fleet.owner_of(session)
        return self._app(request) if owner is None else self._forward(owner, request)

    async def _forward(self, owner: Any, request: Request) -> Response | ResponseStream:
        if request.is_complete:
            body = bytes(request.body)
        else:
            rejected = await self._app.reject_by_head(request)
            if rejected is not None:
                return rejected
            try:
                body = await read_body(request, self._limits)
            except Rejection as rejection:
                return self._app.reject(request, rejection)
        try:
            return await self._fleet.forward(owner, request, body)
        except WorkerGone:
            # The process that had the session has gone, and the session with it: the client starts again.
            problem = "The session is unknown or has expired: start again with initialize"
            return self._app.reject(request, HostRejection(404, problem, "session"))
        except StoreUnavailable:
            problem = "The session's server cannot be found: Redis is unavailable. Try again in a moment."
            return self._app.reject(request, HostRejection(503, problem, "store", headers=_RETRY))
