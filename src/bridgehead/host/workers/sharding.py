"""Sharding: sends each request of a session to the worker that has the session.

A session's id begins with the number of its worker. What belongs to no session (all of the stateless era, and
every `initialize`) is answered by whichever worker the connection came to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridgehead.mcp import Limits
from bridgehead.mcp.http.guard import read_body
from bridgehead.mcp.http.message import Handled, Request, Response, ResponseStream
from bridgehead.mcp.http.rejection import Rejection

from ..auth.rejection import HostRejection
from .forwarding import WorkerGone, Workers

if TYPE_CHECKING:
    from ..app import HostApplication

SESSION = b"mcp-session-id"
_QUERY = b"session_id="
_LONGEST_PREFIX = 4
"""Characters in which the number of a worker and its mark must be found."""


class ShardedApplication:
    """One worker's application, which knows the other workers."""

    def __init__(self, app: HostApplication, workers: Workers, limits: Limits) -> None:
        self._app = app
        self._workers = workers
        self._limits = limits

    def __call__(self, request: Request) -> Handled:
        """Answer a request here, or forward it."""
        owner = self._owner(request)
        return self._app(request) if owner == self._workers.index else self._forward(owner, request)

    def _owner(self, request: Request) -> int:
        """Tell which worker has the session of a request; we, where it has none that anybody has."""
        session = request.headers.get(SESSION)
        if session is None and request.query.startswith(_QUERY):
            session = request.query[len(_QUERY) :]
        if session is None:
            return self._workers.index
        number, mark, _ = session[:_LONGEST_PREFIX].partition(b"~")
        if not mark or not number.isdigit() or int(number) >= len(self._workers.ports):
            return self._workers.index
        return int(number)

    async def _forward(self, owner: int, request: Request) -> Response | ResponseStream:
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
            return await self._workers.forward(owner, request, body)
        except WorkerGone:
            # The worker that had the session has gone, and the session with it: the client starts again.
            problem = "The session is not known, or no longer: start again with initialize"
            return self._app.reject(request, HostRejection(404, problem, "session"))
