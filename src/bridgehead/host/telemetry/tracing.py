"""Tracing: a span for each tool call, resource read and prompt, in the trace that its client has begun.

The W3C trace context comes in the `_meta` of a request or in its headers; the engine gives it to the tool as
`ctx.trace`, which passes it on to the far side. Spans are made and exported only where the extra `otel` is
installed and an endpoint is set. Everything else is decided by OpenTelemetry's own settings, in the
environment or in `.env`: service name, endpoints, headers, sampling, exporters.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from threading import Thread

from bridgehead import __version__
from bridgehead.mcp import Invocation, Outcome
from bridgehead.runtime import logs

_NANO = 1_000_000_000
_PREFIX = "OTEL_"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_METHODS = {"tool": "tools/call", "resource": "resources/read", "prompt": "prompts/get"}
CLOSE_SECONDS = 3.0
"""How long the end of the process waits for a collector."""

log = logs.logger("host.tracing")


def open_tracer(environment: Mapping[str, str]) -> Tracer | None:
    """Make what sends spans; None where no endpoint is set, or nothing is installed to send them with."""
    own = {name: value for name, value in environment.items() if name.startswith(_PREFIX) and value.strip()}
    if not any(name in own for name in _ENDPOINTS) or _is_off(own):
        return None
    for name, value in own.items():
        os.environ.setdefault(name, value)  # what stands in .env, where the SDK would not look
    try:
        return Tracer(
            has_name="OTEL_SERVICE_NAME" in own or "service.name" in own.get("OTEL_RESOURCE_ATTRIBUTES", "")
        )
    except ImportError as missing:
        # The setting may be there for everything on this machine, so it does not keep the host from serving.
        log.warn(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but no spans are sent",
            missing=missing.name,
            next_step='pip install "bridgehead[otel]"',
        )
        return None


def _is_off(own: Mapping[str, str]) -> bool:
    is_disabled = own.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return is_disabled or own.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() == "none"


class Tracer:
    """Makes spans with OpenTelemetry, and sends them in batches from a thread of its own."""

    def __init__(self, *, has_name: bool) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        logs.adopt("opentelemetry")  # which says that a collector is away in lines of its own otherwise
        named = {} if has_name else {SERVICE_NAME: "bridgehead"}
        self._provider = TracerProvider(resource=Resource.create({**named, SERVICE_VERSION: __version__}))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("bridgehead")
        self._context = TraceContextTextMapPropagator()
        self._kind = SpanKind.SERVER
        self._error = StatusCode.ERROR

    def trace_call(
        self, bridge: str, call: Invocation, outcome: Outcome, seconds: float, request_id: str
    ) -> None:
        """Make the span of a call that is over, as a part of the trace in its request."""
        end, context = time.time_ns(), call.context
        trace = context.trace
        method = _METHODS[call.kind]
        attributes = {
            "mcp.method.name": method,
            "mcp.protocol.version": context.revision.name,
            "jsonrpc.request.id": str(context.request_id),
            "network.transport": "tcp",
            "bridgehead.bridge": bridge,
            "bridgehead.client": context.principal or "",
            "bridgehead.request": request_id,
            "bridgehead.outcome": outcome.status,
        }
        if call.kind == "tool":
            attributes |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.name}
        elif call.kind == "resource":
            attributes["mcp.resource.uri"] = call.name
        else:
            attributes["gen_ai.prompt.name"] = call.name
        if outcome.status == "error":
            attributes["error.type"] = "tool_error" if outcome.error is None else type(outcome.error).__name__
        name = method if call.kind == "resource" else f"{method} {call.name}"
        parent = self._context.extract(trace) if trace else None
        span = self._tracer.start_span(
            name, parent, self._kind, attributes, start_time=end - int(seconds * _NANO)
        )
        if outcome.status == "error":
            span.set_status(self._error)
        span.end(end)

    def close(self) -> None:
        """Send what is not sent yet; a collector that does not answer does not hold the process up."""
        closing = Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)
