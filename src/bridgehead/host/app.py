"""App: the host's application. Every request comes in here, and its response goes out marked and counted.

Finding out who asks and where to takes no waiting, unless an issuer has to be asked for its keys; so a call
of a plain tool is answered without a task here as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from bridgehead.mcp import OVERLOADED, ProtocolError, jsonrpc
from bridgehead.mcp.http.message import ClientGone, Handled, Handler, Request, Response, ResponseStream
from bridgehead.mcp.http.rejection import Rejection
from bridgehead.runtime import events
from bridgehead.runtime.timing import Clock

from .auth.admission import Admission
from .auth.grants import Grant
from .auth.rejection import HostRejection
from .auth.revocation import TokenWatch
from .pages import Pages
from .proxies import Proxies
from .registry import Registry
from .reloading import Reloader
from .request import (
    HostRequest,
    RequestIds,
    answer_preflight,
    current_request,
    is_preflight,
)
from .routes import Route
from .telemetry.access_log import AccessLog
from .telemetry.metrics import HostMetrics
from .views import Views
from .workers.forwarding import OWN_EVENTS, OWN_METRICS

if TYPE_CHECKING:
    from .dashboard.dashboard import Dashboard
    from .database import HostDatabase
    from .events.webhook import Webhook
    from .replicas.replica import Replica
    from .telemetry.otlp import Telemetry

CLIENT_GONE = 499
"""The status, for logs and metrics only, of a request whose client left before its response began."""
UNAUTHORIZED = 401
REASONS = {
    403: "origin",
    406: "accept",
    408: "slow_body",
    413: "body_size",
    415: "content_type",
    421: "host",
    429: "too_many",
}
"""Why the engine rejects a request, by its status."""
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
        proxies: Proxies,
        metrics: HostMetrics,
        access_log: AccessLog,
        reloader: Reloader,
        clock: Clock,
        watch: TokenWatch,
        shutdown_seconds: float,
        telemetry: Telemetry | None = None,
        webhook: Webhook | None = None,
        replica: Replica | None = None,
        database: HostDatabase | None = None,
        dashboard: Dashboard | None = None,
    ) -> None:
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
        self._shutdown_seconds = shutdown_seconds
        self._telemetry = telemetry
        self._webhook = webhook
        self.replica = replica
        """This process as one of several; None where it is alone."""
        self._database = database
        self.dashboard = dashboard
        """The page for people; None where it is switched off."""
        self._ids = RequestIds()
        self._running: set[HostRequest] = set()
        self._tasks: list[asyncio.Task[None]] = []

    def __call__(self, http: Request) -> Handled:
        """Answer one request."""
        request = self._describe(http)
        before = current_request.set(request)
        try:
            handled = self._answer(request)
        except Rejection as rejection:
            handled = self._reject(request, rejection)
        finally:
            current_request.reset(before)
        if isinstance(handled, Response):
            self._record(request, handled.status)
            return handled
        return self._wait(request, handled)

    def _describe(self, http: Request) -> HostRequest:
        address, scheme = self.proxies.origin(http.address, http.scheme, http.headers)
        http.address = address
        return HostRequest(http, self._ids.find(http.headers), self._now(), address, scheme)

    # --- what answers --------------------------------------------------------------------------------------

    def _answer(self, request: HostRequest) -> Handled:
        route = self._admission.route(request)
        if route.access == "probe":
            return self._answer_probe(request, route)
        if route.access == "page" and self.dashboard is not None:
            return self.dashboard.answer(request)
        if is_preflight(request):
            return answer_preflight(request)
        if route.access == "public":
            return self.pages.answer(request, route)
        grant = self._admission.authenticate(request)
        if grant is None:
            return self._answer_later(request, route)
        return self._answer_caller(request, route, grant)

    def _answer_caller(self, request: HostRequest, route: Route, grant: Grant) -> Handled:
        counting = self._admission.count(request, grant)
        if counting is None:
            return self._answer_counted(request, route, grant)
        return self._answer_when_counted(counting, request, route, grant)

    async def _answer_when_counted(
        self, counting: Coroutine[Any, Any, None], request: HostRequest, route: Route, grant: Grant
    ) -> Response | ResponseStream:
        await counting
        handled = self._answer_counted(request, route, grant)
        return handled if isinstance(handled, Response) else await handled

    def _answer_counted(self, request: HostRequest, route: Route, grant: Grant) -> Handled:
        self._admission.authorize(request, route, grant)
        if not route.is_mcp:
            return self.pages.answer(request, route)
        if route.bridge is not None:
            problem = self._registry.statuses[route.bridge].problem
            if problem:
                raise HostRejection(503, problem, "bridge", headers=_RETRY, code=OVERLOADED)
        return self._views.find(route.bridge, grant)(request.http)

    async def _answer_later(self, request: HostRequest, route: Route) -> Response | ResponseStream:
        """Do the same for a caller whose token takes waiting to be checked."""
        grant = await self._admission.authenticate_later(request)
        handled = self._answer_caller(request, route, grant)
        return handled if isinstance(handled, Response) else await handled

    def _answer_probe(self, request: HostRequest, route: Route) -> Handled:
        """Answer whoever asks for health: it need not say who it is, but what it says must be true."""
        if self._admission.is_anonymous(request):
            return self.pages.answer(request, route)
        request.grant = self._admission.authenticate(request)
        if request.grant is None:
            return self._answer_probe_later(request, route)
        return self.pages.answer(request, route)

    async def _answer_probe_later(self, request: HostRequest, route: Route) -> Response | ResponseStream:
        request.grant = await self._admission.authenticate_later(request)
        handled = self.pages.answer(request, route)
        return handled if isinstance(handled, Response) else await handled

    async def _wait(
        self, request: HostRequest, work: Coroutine[Any, Any, Response | ResponseStream]
    ) -> Response | ResponseStream:
        """Do the work towards a response, for as long as its caller may have it."""
        current_request.set(request)
        request.task = asyncio.current_task()
        self._running.add(request)
        self.metrics.in_flight += 1
        try:
            response = await work
        except Rejection as rejection:
            response = self._reject(request, rejection)
        except ClientGone:
            self._record(request, CLIENT_GONE)
            raise
        except asyncio.CancelledError:
            if not request.is_revoked:
                raise
            response = self._cut_off(request)
        finally:
            self.metrics.in_flight -= 1
            self._running.discard(request)
        self._record(request, UNAUTHORIZED if request.is_revoked else response.status)
        return response

    # --- how it ends ---------------------------------------------------------------------------------------

    def _reject(self, request: HostRequest, rejection: Rejection) -> Response:
        error, response = rejection.error, rejection.response
        request.reason = getattr(rejection, "reason", "") or REASONS.get(response.status, "request")
        self.metrics.rejections.add(request.reason)
        body = jsonrpc.error(None, ProtocolError(error.code, error.message, {"requestId": request.id}))
        return response._replace(body=body)

    def _record(self, request: HostRequest, status: int) -> None:
        """Count and log a request that is over."""
        seconds = self._now() - request.started
        if status in REASONS and not request.reason:
            request.reason = REASONS[status]
            self.metrics.rejections.add(request.reason)
        self.metrics.count_request(
            request.route,
            status,
            seconds,
            None if request.grant is None else request.grant.name,
            is_stream=request.http.stream is not None,
        )
        self._access_log.write(request, status, seconds)

    def _cut_off(self, request: HostRequest) -> Response | ResponseStream:
        """End the response to a caller whose token was revoked, or has expired."""
        if request.task is not None:
            request.task.uncancel()
        rejection = HostRejection(401, "The token has been revoked or has expired.", "token_ended")
        response = self._reject(request, rejection)
        return request.http.stream or response

    def revoke_where(self, has_ended: Callable[[Grant], bool]) -> None:
        """End the responses under way to callers whose grant has ended, and their tasks."""
        for request in tuple(self._running):
            if request.grant is not None and request.grant.name is not None and has_ended(request.grant):
                request.revoke()
        self._views.tasks.cancel_where(
            lambda context: self._watch.is_token_over(str(getattr(context.outlet, "token_id", ""))),
            "The token that made the task has been revoked or has expired.",
        )

    # --- what never becomes a response of ours -----------------------------------------------------------

    async def reject_by_head(self, http: Request) -> Response | None:
        """Tell whether a request is rejected by its head alone, so that its body need not be read."""
        request = self._describe(http)
        try:
            route = self._admission.route(request)
            if route.access == "token" and self._admission.authenticate(request) is None:
                await self._admission.authenticate_later(request)
        except Rejection as rejection:
            return self._rejected(request, rejection)
        return None

    def reject(self, http: Request, rejection: Rejection) -> Response:
        """Reject a request that could not be forwarded to where it belongs."""
        request = self._describe(http)
        try:
            self._admission.route(request)
        except Rejection as earlier:
            rejection = earlier
        return self._rejected(request, rejection)

    def _rejected(self, request: HostRequest, rejection: Rejection) -> Response:
        response = self._reject(request, rejection)
        self._record(request, response.status)
        return response

    def record_early_rejection(self, reason: str, address: str, status: int) -> None:
        """Hear of what the server rejected before it was a request."""
        self.metrics.rejections.add(reason)
        self._access_log.write_early(reason, address, status)

    @property
    def own_answers(self) -> dict[str, Handler]:
        """What this process tells other workers of itself, by path."""
        own: dict[str, Handler] = {
            OWN_METRICS: lambda _request: Response(200, self.pages.own_metrics()),
            OWN_EVENTS: self.pages.events.serve_own,
        }
        return own if self.dashboard is None else own | self.dashboard.own_answers

    # --- the process's life --------------------------------------------------------------------------------

    async def start(self) -> None:
        """Let every bridge begin, and watch over the tokens."""
        if self.replica is not None:
            await self.replica.start(self._registry.bridges)
        if self._database is not None:
            await self._database.start()
        await self._registry.start()
        begin = asyncio.get_running_loop().create_task
        self._tasks = [begin(self._watch.run(self.revoke_where)), begin(self._access_log.run())]
        if self.dashboard is not None:
            self._tasks.append(begin(self.dashboard.run()))
        if self._webhook is not None:
            self._webhook.start(events.feed)
        if self._telemetry is not None:
            self._tasks.append(begin(self._telemetry.send_metrics(self.pages.own_sources)))

    def end_streams(self) -> None:
        """Fail readiness, and end what would never end by itself; calls are still answered."""
        self.pages.is_ending = True
        self._views.end_streams()
        self.pages.events.end()

    async def stop(self) -> None:
        """End every session, and let every bridge end."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._access_log.settle()
        self._views.close()
        await self._views.tasks.stop()
        await self._registry.stop(self._shutdown_seconds)
        if self._webhook is not None:
            await self._webhook.stop(events.feed)
        if self.replica is not None:
            await self.replica.stop()
        if self._database is not None:
            await self._database.stop()
