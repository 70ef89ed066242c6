"""Span encoding: the bytes say what the SDK's own encoder would say."""

from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from bridgehead.host.telemetry import span_encoding
from bridgehead.host.telemetry.span_encoding import FastSpanExporter, SpanEncoder

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ATTRIBUTES: dict[str, Any] = {
    "mcp.method.name": "tools/call",
    "bridgehead.cost_usd": 0.000463,
    "gen_ai.usage.input_tokens": 123_456,
    "negative": -5,
    "one": 1,
    "so": True,
    "not": False,
    "true float": 1.0,
    "long": "ä" * 300,
    "empty": "",
}


class Kept(SpanProcessor):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def make_spans() -> list[ReadableSpan]:
    kept = Kept()
    provider = TracerProvider(resource=Resource.create({"service.name": "x"}), shutdown_on_exit=False)
    provider.add_span_processor(kept)
    tracer = provider.get_tracer("bridgehead", "1.0")
    for trace in ({}, {"traceparent": PARENT}, {"traceparent": PARENT, "tracestate": "a=b,c=d"}):
        context = TraceContextTextMapPropagator().extract(trace) if trace else None
        for status in (None, StatusCode.ERROR):
            span = tracer.start_span("tools/call écho", context, SpanKind.SERVER, ATTRIBUTES)
            if status is not None:
                span.set_status(status)
            span.end()
    tracer.start_span("bare", None, SpanKind.SERVER).end()
    return kept.spans


def decoded(data: bytes) -> ExportTraceServiceRequest:
    found: ExportTraceServiceRequest = ExportTraceServiceRequest.FromString(data)
    return found


def test_a_batch_says_what_the_sdk_would_say() -> None:
    spans, encoder = make_spans(), SpanEncoder()
    for batch in (spans, spans[:1], spans):  # the second and third with what was kept
        assert decoded(encoder.encode(batch)) == encode_spans(batch)


def test_what_is_kept_of_attributes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_encoding, "_MOST_KEPT", 3)
    spans, encoder = make_spans(), SpanEncoder()

    assert decoded(encoder.encode(spans)) == encode_spans(spans)
    assert len(encoder._attributes) <= 3  # noqa: SLF001 - what is bounded


class Plain:
    """An exporter that cannot be given bytes, as older ones."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.is_closed = False

    def export(self, spans: Any) -> SpanExportResult:
        self.taken += spans
        return SpanExportResult.SUCCESS

    def force_flush(self, _timeout_millis: int) -> bool:
        return True

    def shutdown(self) -> None:
        self.is_closed = True


def test_an_exporter_that_takes_no_bytes_gets_the_spans() -> None:
    plain, spans = Plain(), make_spans()
    exporter = FastSpanExporter(plain)

    assert exporter.export(spans) is SpanExportResult.SUCCESS
    assert exporter.force_flush()
    exporter.shutdown()

    assert plain.taken == spans
    assert plain.is_closed
