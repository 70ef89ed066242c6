"""Tracing: a span for each request, whatever its method, in the trace that its client has begun.

The W3C trace context comes in the `_meta` of a request or in its headers. The span becomes its child, and
what the tool passes on to the far side (`ctx.trace`) names the span. Attributes follow the conventions for
MCP and GenAI. Nothing here runs where no spans are exported: the dispatcher is then the engine's own.
"""

from __future__ import annotations

from collections.abc import Coroutine
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import UNSET

from bridgehead.mcp import Dispatcher, Invocation, Outcome, ProtocolError, Revision

from ..request import current_request

if TYPE_CHECKING:
    from opentelemetry.trace import Span
    from opentelemetry.trace import Tracer as OtelTracer

# The engine's own, which it keeps to itself: what is read of them here, its tests hold.
Request: TypeAlias = Any
Connection: TypeAlias = Any
Outlet: TypeAlias = Any

_UNKNOWN = "(unknown)"
_LONGEST = 256
"""Characters of what a client names."""
_GEN_AI = {
    "tool": {"gen_ai.operation.name": "execute_tool"},
    "prompt": {},
    "resource": {},
}
_NAMED = {"tool": "gen_ai.tool.name", "prompt": "gen_ai.prompt.name", "resource": "mcp.resource.uri"}


class RequestSpan:
    """The span of one request while it is served; calls add to it what they know."""

    __slots__ = ("_connection", "_error", "_has_failed", "_meta_version", "_span", "attributes", "name")

    def __init__(self, span: Span, name: str, connection: Connection, version: str, error: Any) -> None:
        self._span = span
        self._connection = connection
        self._meta_version = version
        self._error = error
        self._has_failed = False
        self.name = name
        self.attributes: dict[str, Any] = {}

    def add_call(self, bridge: str, call: Invocation, outcome: Outcome) -> None:
        """Add what became of a tool call, a resource read or a prompt."""
        kind, error = call.kind, outcome.error
        self.attributes |= {
            **_GEN_AI[kind],
            _NAMED[kind]: call.name,
            "bridgehead.bridge": bridge,
            "bridgehead.outcome": outcome.status,
            **(call.context.attributes or {}),
        }
        if kind != "resource":
            self.name = f"{self.name} {call.name}"
        if outcome.status == "error":
            self.fail("tool_error" if error is None else type(error).__name__)

    def fail(self, kind: str) -> None:
        """Note that it failed; the first reason is the nearest to the cause."""
        if not self._has_failed:
            self._has_failed = True
            self.attributes.setdefault("error.type", kind)  # a bridge's own word comes first

    def end(self) -> None:
        """End it now."""
        client = self._connection.client
        version = self._meta_version or ("" if client is None else client.revision.name)
        if version:
            self.attributes["mcp.protocol.version"] = version
        span = self._span
        span.set_attributes(self.attributes)
        if span.is_recording():
            span.update_name(self.name)
        if self._has_failed:
            span.set_status(self._error)
        span.end()


current_span: ContextVar[RequestSpan | None] = ContextVar("span", default=None)
"""The span of the request that is being served."""


class Tracer:
    """Begins spans."""

    def __init__(self, tracer: OtelTracer) -> None:
        from opentelemetry.trace import SpanKind, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._tracer = tracer
        self._extract = TraceContextTextMapPropagator().extract
        self._kind = SpanKind.SERVER
        self._error = StatusCode.ERROR

    def begin(self, request: Request, connection: Connection, outlet: Outlet) -> RequestSpan:
        """Begin the span of a request, and let what is passed on from here name it as its parent."""
        meta = request.params.meta
        trace: dict[str, str] = getattr(outlet, "trace", {})
        version = ""
        if meta is not None:
            version = meta.protocol_version or ""
            if meta.traceparent is not UNSET:
                trace = {"traceparent": meta.traceparent, "tracestate": meta.tracestate or ""}
        name = _UNKNOWN if request.method is None else request.name
        attributes = {
            "mcp.method.name": request.name[:_LONGEST],
            "jsonrpc.request.id": str(request.id)[:_LONGEST],
            "network.transport": "tcp",
            "network.protocol.name": "http",
        }
        session = getattr(outlet, "session_id", "")
        if session:
            attributes["mcp.session.id"] = session
        if connection.principal:
            attributes["bridgehead.client"] = connection.principal
        http = current_request.get()
        if http is not None:
            attributes["bridgehead.request"] = http.id
        span = self._tracer.start_span(name, self._extract(trace) if trace else None, self._kind, attributes)
        found = span.get_span_context()
        if http is not None:
            http.trace, http.span = f"{found.trace_id:032x}", f"{found.span_id:016x}"
        request.params.set_trace_parent(
            f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"
        )
        return RequestSpan(span, name, connection, version, self._error)


class TracedDispatcher(Dispatcher):
    """A dispatcher whose requests are spans."""

    tracer: Tracer

    def serve(
        self,
        request: Request,
        connection: Connection,
        outlet: Outlet,
        expected: Revision | None = None,
    ) -> bytes | Coroutine[Any, Any, bytes | None]:
        """Run a request within its span."""
        span = self.tracer.begin(request, connection, outlet)
        before = current_span.set(span)
        try:
            work = super().serve(request, connection, outlet, expected)
        except ProtocolError as failure:
            _end_failed(span, failure)
            raise
        finally:
            current_span.reset(before)
        if isinstance(work, bytes):
            span.end()
            return work
        return self._serve_later(span, work)

    async def _serve_later(self, span: RequestSpan, work: Coroutine[Any, Any, bytes | None]) -> bytes | None:
        current_span.set(span)
        try:
            answer = await work
        except ProtocolError as failure:
            _end_failed(span, failure)
            raise
        except BaseException as error:
            span.fail(type(error).__name__)
            span.end()
            raise
        span.end()
        return answer


def _end_failed(span: RequestSpan, failure: ProtocolError) -> None:
    span.attributes["rpc.response.status_code"] = str(failure.code)
    span.fail(str(failure.code))
    span.end()
