"""Tracing: a span for each tool call, in the trace that its client has begun.

The W3C trace context comes in the `_meta` of a request; the engine gives it to the tool as `ctx.trace`, which
passes it on to the far side. Spans are made and exported only where the extra `otel` is installed and an
endpoint is set; its own settings (`OTEL_SERVICE_NAME`, `OTEL_EXPORTER_OTLP_HEADERS` and others) hold.
"""

from __future__ import annotations

import time

from bridgehead import __version__
from bridgehead.mcp import Invocation
from bridgehead.runtime import logs

_NANO = 1_000_000_000

log = logs.logger("host.tracing")


def open_tracer(endpoint: str | None) -> Tracer | None:
    """Make what sends spans to an endpoint; None where there is none, or nothing to send them with."""
    if endpoint is None:
        return None
    try:
        return Tracer(endpoint)
    except ImportError as missing:
        # The setting may be there for everything on this machine, so it does not keep the host from serving.
        log.warn(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but no spans are sent",
            missing=missing.name,
            next_step='pip install "bridgehead[otel]"',
        )
        return None


class Tracer:
    """Makes spans with OpenTelemetry, and sends them in batches from a thread of its own."""

    def __init__(self, endpoint: str) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        resource = Resource.create({SERVICE_NAME: "bridgehead", SERVICE_VERSION: __version__})
        self._provider = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("bridgehead")
        self._context = TraceContextTextMapPropagator()
        self._kind = SpanKind.SERVER
        self._error = StatusCode.ERROR

    def trace_call(self, bridge: str, call: Invocation, outcome: str, seconds: float) -> None:
        """Make the span of a call that is over, as a part of the trace in its request."""
        end = time.time_ns()
        span = self._tracer.start_span(
            f"tools/call {call.name}",
            self._context.extract(call.context.trace),
            self._kind,
            {
                "mcp.method.name": "tools/call",
                "gen_ai.tool.name": call.name,
                "bridgehead.bridge": bridge,
                "bridgehead.client": call.context.principal or "",
                "bridgehead.outcome": outcome,
            },
            start_time=end - int(seconds * _NANO),
        )
        if outcome == "error":
            span.set_status(self._error)
        span.end(end)

    def close(self) -> None:
        """Send what is not sent yet, and end the thread."""
        self._provider.shutdown()
