"""App: the host's application. Every request comes in here, and its answer goes out marked and counted.

Plain ASGI, and with the engine's entrance for requests that are there whole: finding out who asks and where
to takes no waiting, so that a call is answered at once here as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from bridgehead.mcp import OVERLOADED, ProtocolError, jsonrpc
from bridgehead.mcp.http import Application
from bridgehead.mcp.http.exchange import Outcome, Receive, Refused, Scope, Send, Whole
from bridgehead.runtime.timing import Clock

from . import cors
from .access_log import AccessLog
from .accounts import Accounts
from .admission import Admission
from .forwarded import Proxies
from .grants import Grant
from .pages import Pages
from .refusals import Refusal
from .registry import Registry
from .request_ids import RequestIds, current
from .routes import Route
from .token_watch import TokenWatch
from .views import Views
from .visit import Visit, replayed

HUNG_UP = 499
"""The status, for logs and metrics only, of a request whose client left before its answer began."""
REASONS = {403: "origin", 406: "accept", 408: "slow_body", 413: "body_size", 415: "content_type", 421: "host"}
"""Why the engine refuses a request, by its status."""
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
        accounts: Accounts,
        access_log: AccessLog,
        clock: Clock,
        watch: TokenWatch,
        shutdown_seconds: float,
    ) -> None:
        self._registry = registry
        self._views = views
        self._admission = admission
        self.pages = pages
        self._proxies = proxies
        self._accounts = accounts
        self._access_log = access_log
        self._now = clock.monotonic
        self._watch = watch
        self._shutdown_seconds = shutdown_seconds
        self._ids = RequestIds()
        self._running: set[Visit] = set()

    # --- the two ways in -----------------------------------------------------------------------------------

    def at_once(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> Outcome:
        """Serve a request whose body is there; what need not wait comes back as a whole response."""
        visit = self._visit(scope)
        before = current.set(visit.id)
        try:
            outcome = self._outcome(visit, body, receive, send)
        except Refused as refusal:
            outcome = self._turned_away(visit, refusal)
        finally:
            current.reset(before)
        return self._finished(visit, outcome) if isinstance(outcome, Whole) else self._waiting(visit, outcome)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
        else:
            visit = self._visit(scope)
            response = await self._waiting(visit, self._answered(visit, receive, send))
            if response is not None:
                await visit.respond(response, send)

    def _visit(self, scope: Scope) -> Visit:
        headers = dict(scope["headers"])
        visit = Visit(scope, headers, self._ids.of(headers), self._now())
        visit.address, visit.scheme = self._proxies.origin(scope.get("client"), scope["scheme"], headers)
        return visit

    async def refusal(self, scope: Scope) -> Whole | None:
        """Tell whether a request is turned away by its head alone, so that its body need not be read."""
        visit = self._visit(scope)
        try:
            route = self._admission.route(visit)
            if route.door == "closed" and self._admission.grant(visit) is None:
                await self._admission.ask(visit)
        except Refused as refusal:
            return self._finished(visit, self._turned_away(visit, refusal))
        return None

    def refuse(self, scope: Scope, refusal: Refused) -> Whole:
        """Turn a request away that could not be passed on to where it belongs."""
        visit = self._visit(scope)
        try:
            self._admission.route(visit)
        except Refused as earlier:
            refusal = earlier
        return self._finished(visit, self._turned_away(visit, refusal))

    def refused_early(self, reason: str, address: str, status: int) -> None:
        """Hear of what the server refused before it was a request."""
        self._accounts.refusals.add(reason)
        self._access_log.note_early(reason, address, status)

    # --- what answers --------------------------------------------------------------------------------------

    def _outcome(self, visit: Visit, body: bytes, receive: Receive, send: Send) -> Outcome:
        route = self._admission.route(visit)
        if not route.is_mcp or visit.method != "POST":
            return self._answered(visit, replayed(body, receive), send)
        grant = self._admission.grant(visit)
        if grant is None:
            return self._answered(visit, replayed(body, receive), send)
        self._admission.let_in(visit, route, grant)
        view = self._view(route, grant)
        outcome = view.at_once(visit.scope, body, receive, visit.through(send))
        return outcome or _nothing_more(view(visit.scope, replayed(body, receive), visit.through(send)))

    async def _answered(self, visit: Visit, receive: Receive, send: Send) -> Whole | None:
        """Answer with as much waiting as it takes; None where the answer has been sent."""
        route = self._admission.route(visit)
        if route.door != "open" and cors.is_preflight(visit.method, visit.headers):
            return cors.preflight(visit.headers)
        if route.door == "closed":
            grant = self._admission.grant(visit) or await self._admission.ask(visit)
            self._admission.let_in(visit, route, grant)
        elif route.door == "open":
            visit.grant = await self._admission.prober(visit)
        if not route.is_mcp:
            outcome = self.pages.answer(visit, route)
            return outcome if isinstance(outcome, Whole) else await outcome
        assert visit.grant is not None  # noqa: S101 - it was let in
        await self._view(route, visit.grant)(visit.scope, receive, visit.through(send))
        return None

    def _view(self, route: Route, grant: Grant) -> Application:
        problem = self._registry.standings[route.bridge].problem if route.bridge is not None else ""
        if problem:
            raise Refusal(503, problem, "bridge", headers=_RETRY, code=OVERLOADED)
        return self._views.of(route.bridge, grant)

    # --- how it ends ---------------------------------------------------------------------------------------

    def _turned_away(self, visit: Visit, refusal: Refused) -> Whole:
        told, response = refusal.error, refusal.response
        visit.reason = getattr(refusal, "reason", "") or REASONS.get(response.status, "request")
        self._accounts.refusals.add(visit.reason)
        body = jsonrpc.error(None, ProtocolError(told.code, told.message, {"requestId": visit.id}))
        return response._replace(body=body)

    def _finished(self, visit: Visit, response: Whole) -> Whole:
        self._over(visit, response.status)
        return visit.marked(response)

    def _over(self, visit: Visit, status: int) -> None:
        seconds = self._now() - visit.started
        if status in REASONS and not visit.reason:
            visit.reason = REASONS[status]
            self._accounts.refusals.add(visit.reason)
        name = None if visit.grant is None else visit.grant.name
        self._accounts.answered(visit.counted_as, status, seconds, name)
        self._access_log.note(visit, status, seconds)

    async def _waiting(self, visit: Visit, work: Coroutine[Any, Any, Whole | None]) -> Whole | None:
        """Do the work towards an answer, for as long as its caller may have it."""
        current.set(visit.id)
        visit.task = asyncio.current_task()
        self._running.add(visit)
        self._accounts.in_flight += 1
        try:
            response = await work
        except Refused as refusal:
            response = self._turned_away(visit, refusal)
        except asyncio.CancelledError:
            if not visit.is_over:
                raise
            response = await self._cut_off(visit)
        finally:
            self._accounts.in_flight -= 1
            self._running.discard(visit)
        if response is not None:
            return self._finished(visit, response)
        self._over(visit, 401 if visit.is_over else visit.status or HUNG_UP)
        return None

    async def _cut_off(self, visit: Visit) -> Whole | None:
        """End an answer to a caller whose token holds no longer."""
        if visit.task is not None:
            visit.task.uncancel()
        response = self._turned_away(visit, Refusal(401, "The token holds no longer", "token_ended"))
        if not visit.status:
            return response
        await visit.end_stream()
        return None

    def end_where(self, is_over: Callable[[Grant], bool]) -> None:
        """End the answers under way to callers whose grant holds no longer."""
        for visit in tuple(self._running):
            if visit.grant is not None and visit.grant.name is not None and is_over(visit.grant):
                visit.end()

    # --- the process's life --------------------------------------------------------------------------------

    async def _live(self, receive: Receive, send: Send) -> None:
        running: list[asyncio.Task[None]] = []
        while True:
            event = await receive()
            if event["type"] == "lifespan.startup":
                await self._registry.start()
                begin = asyncio.get_running_loop().create_task
                running = [begin(self._watch.run(self.end_where)), begin(self._access_log.run())]
                await send({"type": "lifespan.startup.complete"})
            elif event["type"] == "lifespan.shutdown":
                for task in running:
                    task.cancel()
                self._access_log.settle()
                self._views.close()
                await self._registry.stop(self._shutdown_seconds)
                await send({"type": "lifespan.shutdown.complete"})
                return

    def end_streams(self) -> None:
        """End what would never end by itself, because the server is going; calls are still answered."""
        self._views.end_streams()


async def _nothing_more(sending: Coroutine[Any, Any, None]) -> None:
    """Wait for an answer that is sent piece by piece."""
    await sending
