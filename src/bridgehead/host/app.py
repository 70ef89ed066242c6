"""App: the host's application. Every request comes in here; its response is counted and logged.

A request whose caller is known and whose tool needs no waiting is answered without a task: `__call__` returns
the response itself. Everything else is one coroutine.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

import msgspec

from bridgehead.mcp import OVERLOADED, FairThreads, ProtocolError, jsonrpc
from bridgehead.mcp.http.accounts import Accounts
from bridgehead.mcp.http.message import AnyResponse, ClientGone, Handler, Request, Response
from bridgehead.mcp.http.rejection import Rejection
from bridgehead.runtime import events
from bridgehead.runtime.callers import is_operator
from bridgehead.runtime.timing import Clock

from .audit.trail import Trail
from .auth.admission import Admission
from .auth.rejection import HostRejection
from .auth.revocation import TokenWatch
from .auth.tokens import Tokens
from .dashboard.dashboard import Dashboard
from .database import HostDatabase
from .events.webhook import Webhook
from .ownership.forwarding import OWN_TASK
from .pages import Pages
from .proxies import UNKNOWN, TrustedProxies
from .registry import Registry
from .reloading import Reloader
from .replicas.replica import Replica
from .request import (
    HostRequest,
    RequestIds,
    answer_preflight,
    current_request,
    is_preflight,
)
from .telemetry.access_log import AccessLog
from .telemetry.metrics import HostMetrics
from .views import Views

if TYPE_CHECKING:
    from .telemetry.otlp import Telemetry

T = TypeVar("T")

CLIENT_GONE = 499
"""Logged and counted if the client left before its response began (nginx's status)."""
UNAUTHORIZED = 401
REASONS = {
    403: "origin",
    406: "accept",
    408: "slow_body",
    413: "body_size",
    415: "content_type",
    421: "host",
    429: "too_many",
    503: "busy",
}
"""The reason under which a rejection by the engine is counted and logged, by its status."""
_FIRST_FAILURE = 400
_RETRY = ((b"retry-after", b"5"),)


class HostApplication:
    """All bridges of a process, over HTTP."""

    def __init__(
        self,
        registry: Registry,
        views: Views,
        admission: Admission,
        pages: Pages,
        *,
        proxies: TrustedProxies,
        metrics: HostMetrics,
        access_log: AccessLog,
        reloader: Reloader,
        clock: Clock,
        watch: TokenWatch | None,
        shutdown_seconds: float,
        tokens: Tokens | None = None,
        telemetry: Telemetry | None = None,
        webhook: Webhook | None = None,
        replica: Replica | None = None,
        database: HostDatabase | None = None,
        trail: Trail | None = None,
        dashboard: Dashboard | None = None,
        mount: str = "",
        is_https: bool = False,
    ) -> None:
        self._is_https = is_https
        """Whether the public URL is https: then cookies are for https alone, whatever a proxy says."""
        self._mount = mount
        """The path of the public URL, under which a proxy exposes this server; a proxy may strip it."""
        self._registry = registry
        self._views = views
        self._admission = admission
        self.pages = pages
        self.proxies = proxies
        self.metrics = metrics
        self._access_log = access_log
        self.reload = reloader.reload
        self._now = clock.monotonic
        self._watch = watch
        """None if there are no tokens: nothing can be revoked then."""
        self._tokens = tokens
        self._shutdown_seconds = shutdown_seconds
        self._telemetry = telemetry
        self._webhook = webhook
        self.replica = replica
        """This process as one of several replicas; None without Redis."""
        self._database = database
        self._trail = trail
        """The audit; None if it is switched off."""
        self.dashboard = dashboard
        """None if it is switched off."""
        self._ids = RequestIds()
        self._running: set[HostRequest] = set()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def accounts(self) -> Accounts:
        """The accounts of all callers, over all views."""
        return self._views.accounts

    async def __call__(self, http: Request) -> AnyResponse:
        """Answer one request; `_revoke_ended` may cut it off."""
        request = self._describe(http)
        current_request.set(request)
        request.task = asyncio.current_task()
        self._running.add(request)
        self.metrics.in_flight += 1
        response: AnyResponse
        try:
            response = await self._answer(request)
        except Rejection as rejection:
            response = self._reject(request, rejection)
        except ClientGone:
            self._record(request, CLIENT_GONE)
            raise
        except asyncio.CancelledError:
            if not request.is_revoked:
                raise
            # `revoke` cancelled this task, not the server: take that back, or the next await would raise.
            if request.task is not None:
                request.task.uncancel()
            ended = HostRejection(401, "The token has been revoked or has expired.", "token_ended")
            rejected = self._reject(request, ended)
            response = request.http.stream or rejected  # the status line of a stream has been sent
        finally:
            self.metrics.in_flight -= 1
            self._running.discard(request)
            request.task = None  # break the cycle: the task's context holds the request with its whole body
        self._record(request, UNAUTHORIZED if request.is_revoked else response.status)
        if isinstance(response, Response) and response.status >= _FIRST_FAILURE:
            return _with_request_id(response, request.id)
        return response

    def _describe(self, http: Request) -> HostRequest:
        address, scheme = http.address or UNKNOWN, http.scheme
        if self.proxies.trusted:  # without a trusted proxy, X-Forwarded headers are not even read
            address, scheme = self.proxies.origin(address, scheme, http.headers)
        if self._is_https:
            scheme = "https"
        http.address = address
        if self._mount and http.mount != self._mount:
            http.mount = self._mount
            if http.path == self._mount or http.path.startswith(f"{self._mount}/"):
                http.path = http.path.removeprefix(self._mount) or "/"
        return HostRequest(http, self._ids.find(http.headers), self._now(), address, scheme)

    # --- from admission to the answer ----------------------------------------------------------------------

    async def _answer(self, request: HostRequest) -> AnyResponse:
        route = self._admission.route(request)
        if route.access == "page" and self.dashboard is not None:
            return await self.dashboard.answer(request)
        if route.access == "probe" and self._admission.is_anonymous(request):
            return await self.pages.answer(request, route)
        # Before authentication: browsers send a preflight without the Authorization header (Fetch standard).
        if request.method == "OPTIONS" and route.access != "probe" and is_preflight(request):
            return answer_preflight(request)
        if route.access == "public":
            return await self.pages.answer(request, route)
        # Also for probes that send a token: it opens the details, and a wrong one is rejected, not ignored.
        request.grant = grant = await self._admission.authenticate(request)
        is_operator.set(grant.may_look)
        if route.access == "probe":  # probes do not count against the caller's rate limit
            return await self.pages.answer(request, route)
        await self._admission.count(grant)
        self._admission.authorize(request, route, grant)
        if not route.is_mcp:
            return await self.pages.answer(request, route)
        if route.bridge is not None:
            problem = self._registry.statuses[route.bridge].problem
            if problem:
                raise HostRejection(503, problem, "bridge", headers=_RETRY, code=OVERLOADED)
        return await self._views.find(route.bridge, grant).route(request.http)

    # --- rejections and records ----------------------------------------------------------------------------

    def _reject(self, request: HostRequest, rejection: Rejection) -> Response:
        error, response = rejection.error, rejection.response
        request.reason = getattr(rejection, "reason", "") or REASONS.get(response.status, "request")
        self.metrics.rejections.add(request.reason)
        body = jsonrpc.error(None, ProtocolError(error.code, error.message, {"requestId": request.id}))
        return response._replace(body=body)

    def _record(self, request: HostRequest, status: int) -> None:
        """Count and log a finished request."""
        seconds = self._now() - request.started
        # Some rejections come from the engine as a plain status, without an exception and its reason.
        if status in REASONS and not request.reason:
            request.reason = REASONS[status]
            self.metrics.rejections.add(request.reason)
        if request.reason and request.method == "POST" and self._trail is not None:
            # A client of the newest revision names the tool in a header; that of an earlier one is not read.
            tool = request.headers.get(b"mcp-name", b"")
            if request.headers.get(b"mcp-method", b"tools/call") == b"tools/call" and request.path.endswith(
                "/mcp"
            ):
                self._trail.note_refusal(request, tool.decode("latin-1"), request.reason)
        self.metrics.count_request(
            request.route,
            status,
            seconds,
            None if request.grant is None else request.grant.name,
            is_stream=request.http.stream is not None,
        )
        if request.reason or status >= self._access_log.minimum_status:
            self._access_log.write(request, status, seconds)

    def _revoke_ended(self, watch: TokenWatch) -> None:
        """Cut off the unfinished responses and the tasks of callers whose grant has ended."""
        for request in tuple(self._running):
            grant = request.grant
            if grant is not None and grant.name is not None and watch.has_ended(grant):
                request.revoke()
        # Tasks outlive the request that created them, so they are found by the token and not by a request.
        self._views.tasks.cancel_where(
            lambda context: watch.is_token_over(str(getattr(context.outlet, "token_id", ""))),
            "The token that made the task has been revoked or has expired.",
        )

    # --- called by the server and by other replicas --------------------------------------------------------

    async def admit(self, http: Request) -> Response | bool:
        """Authenticate a request by its head; return its rejection, or whether its path has sessions."""
        request = self._describe(http)
        try:
            route = self._admission.route(request)
            if not route.is_mcp:
                return False
            grant = await self._admission.authenticate(request)
            self._admission.authorize(request, route, grant)
        except Rejection as rejection:
            return self._reject_and_record(request, rejection)
        return True

    def reject(self, http: Request, rejection: Rejection) -> Response:
        """Reject a request that could not be forwarded to the owner of its session."""
        request = self._describe(http)
        # A wrong Host, Origin or path comes first: such a caller learns nothing about sessions.
        try:
            self._admission.route(request)
        except Rejection as earlier:
            rejection = earlier
        return self._reject_and_record(request, rejection)

    def _reject_and_record(self, request: HostRequest, rejection: Rejection) -> Response:
        response = self._reject(request, rejection)
        self._record(request, response.status)
        return response

    def record_early_rejection(self, reason: str, address: str, status: int) -> None:
        """Count and log a rejection by the server before the request was complete."""
        self.metrics.rejections.add(reason)
        self._access_log.write_early(reason, address, status)

    @property
    def own_answers(self) -> dict[str, Handler]:
        """Handlers of the paths that only other processes may call."""
        own: dict[str, Handler] = {OWN_TASK: self._answer_about_task}
        return own if self.dashboard is None else own | self.dashboard.own_answers

    async def _answer_about_task(self, http: Request) -> Response:
        record = await self._views.tasks.read(unquote(http.query.decode("latin-1")))
        return Response(404) if record is None else Response(200, msgspec.msgpack.encode(record))

    # --- start and stop ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the stores, start every bridge, then the background tasks."""
        threads = FairThreads(self.accounts.work.add)
        asyncio.get_running_loop().set_default_executor(threads)
        if self.replica is not None:
            await self.replica.start(self._registry.bridges)
        if self._database is not None:
            await self._database.start()
        if self._trail is not None:
            self._trail.start()
        await self._registry.start()
        create_task = asyncio.get_running_loop().create_task
        self._tasks = [create_task(self._access_log.run())]
        if self._watch is not None:
            self._tasks.append(create_task(self._watch.run(partial(self._revoke_ended, self._watch))))
        if self._tokens is not None:
            self._tasks.append(create_task(self._tokens.keep_uses()))
        if self.dashboard is not None:
            self._tasks.append(create_task(self.dashboard.run()))
        if self._webhook is not None:
            self._webhook.start(events.feed)
        if self._telemetry is not None:
            self._tasks.append(create_task(self._telemetry.send_metrics(self.pages.sources)))

    def end_streams(self) -> None:
        """Fail readiness and end the open streams, which would never end by themselves; calls go on."""
        self.pages.is_ending = True
        self._views.end_streams()
        self.pages.events.end()

    async def stop(self) -> None:
        """Stop in the reverse order: background tasks, sessions and tasks, bridges, stores."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._access_log.settle()
        # Before the bridges: sessions and tasks still use them. The stores are last, because the tasks save
        # their final state and the bridges may write.
        self._views.close()
        await self._views.tasks.stop()
        await self._registry.stop(self._shutdown_seconds)
        if self._webhook is not None:
            await self._webhook.stop(events.feed)
        if self._trail is not None:
            await self._trail.stop()
        if self.replica is not None:
            await self.replica.stop()
        if self._database is not None:
            await self._database.stop()


class _Failure(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: str
    id: int | str | None
    error: dict[str, object]


def _with_request_id(response: Response, request_id: str) -> Response:
    """Add `data.requestId` to an error of the engine, which does not know the id."""
    try:
        failure = msgspec.json.decode(response.body, type=_Failure)
    except (msgspec.MsgspecError, TypeError):  # not an error of JSON-RPC
        return response
    data = failure.error.setdefault("data", {})
    if not isinstance(data, dict) or "requestId" in data:
        return response
    data["requestId"] = request_id
    return response._replace(body=msgspec.json.encode(failure))
