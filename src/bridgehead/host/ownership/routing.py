"""Routing: each request is answered by the process that owns its session or task."""

from __future__ import annotations

from bridgehead.mcp import OVERLOADED, Limits
from bridgehead.mcp.http.guard import read_body
from bridgehead.mcp.http.message import AnyResponse, Request, Response
from bridgehead.mcp.http.rejection import Rejection
from bridgehead.runtime.stores import StoreUnavailable

from ..app import HostApplication
from ..auth.rejection import HostRejection
from .forwarding import ClocksDiffer, OwnerGone, Peers
from .owners import is_of_other_version

_SESSION = b"mcp-session-id"
_SESSION_QUERY = b"session_id="
_TASK_METHODS = {b"tasks/get", b"tasks/update", b"tasks/cancel"}
_RETRY = ((b"retry-after", b"1"),)


class OwnerRouter:
    """Answers clients: forwards each request to the owner of its session or task.

    A request about neither is answered here.
    """

    def __init__(self, app: HostApplication, peers: Peers, limits: Limits) -> None:
        self._app = app
        self._peers = peers
        self._limits = limits

    async def __call__(self, request: Request) -> AnyResponse:
        """Answer a request here, or forward it."""
        headers = request.headers
        identifier = headers.get(_SESSION)
        is_task = False
        if identifier is None and request.query.startswith(_SESSION_QUERY):
            identifier = request.query[len(_SESSION_QUERY) :]
        elif identifier is None and headers.get(b"mcp-method") in _TASK_METHODS:
            # The engine refuses a request whose Mcp-Name is not its taskId.
            identifier, is_task = headers.get(b"mcp-name"), True
        owner = None if identifier is None else self._peers.owners.owner_of(identifier)
        if identifier is not None and not is_task and is_of_other_version(identifier):
            # During a rolling upgrade. 404 makes the client open a new session at once, and the log says why.
            problem = "The session belongs to another version of this server: start again with initialize"
            return self._app.reject(request, HostRejection(404, problem, "version"))
        if owner is None:
            return await self._app(request)
        return await self._forward(owner, request, is_task=is_task)

    async def _forward(self, owner: str, request: Request, *, is_task: bool) -> AnyResponse:
        try:
            # First of all: nobody else is to learn who owns what, or to be sent anywhere.
            admitted = await self._app.admit(request)
            if isinstance(admitted, Response):
                return admitted
            if not admitted or (is_task and await self._peers.owners.find(owner) is None):
                # The path has no sessions. Or the task's process has ended: the store has its final state.
                return await self._app(request)
            if request.is_complete:
                body = bytes(request.body)
            else:
                body, _ = await read_body(request, self._limits, self._app.accounts)
            return await self._peers.forward(owner, request, body)
        except Rejection as rejection:
            return self._app.reject(request, rejection)
        except OwnerGone:
            if is_task:  # answered from the store as soon as its entry in Redis has expired
                problem = "The process that runs the task does not answer. Try again in a moment."
                return self._app.reject(request, HostRejection(503, problem, "task", headers=_RETRY))
            # The session is lost with its process: 404 makes the client start again.
            problem = "The session is unknown or has expired: start again with initialize"
            return self._app.reject(request, HostRejection(404, problem, "session"))
        except ClocksDiffer as skew:
            advice = "Synchronise the clocks of the replicas (NTP)."
            return self._app.reject(request, HostRejection(503, f"{skew} {advice}", "clock", code=OVERLOADED))
        except StoreUnavailable:
            subject = "task" if is_task else "session"
            problem = f"The {subject}'s server cannot be found: Redis is unavailable. Try again in a moment."
            return self._app.reject(request, HostRejection(503, problem, "store", headers=_RETRY))
