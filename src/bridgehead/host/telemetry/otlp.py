"""OTLP: hands spans, log lines and metrics to the OpenTelemetry SDK's exporters.

The SDK batches, encodes, sends and retries in its own threads. Log lines are scrubbed like those on standard
error. Metrics are read from the host's own counters, so nothing is counted twice and no call pays for it.
While the collector is unreachable, its data is lost and nothing else is affected.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from threading import Thread
from typing import Any

from opentelemetry._logs import Logger as OtelLogger
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import export as metrics_sdk
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from bridgehead import __version__
from bridgehead.runtime import logs
from bridgehead.runtime.exposition import SourceLabels
from bridgehead.runtime.metrics import Histogram, Metric, Metrics

from .tracing import Tracer

CLOSE_SECONDS = 3.0
"""How long the process waits for a collector when it ends."""
_DEFAULT_INTERVAL_MS = 60_000.0
_EXPORTERS = {
    "traces": ("trace_exporter", "OTLPSpanExporter", "opentelemetry.sdk.trace.export", "ConsoleSpanExporter"),
    "logs": (
        "_log_exporter",
        "OTLPLogExporter",
        "opentelemetry.sdk._logs.export",
        "ConsoleLogRecordExporter",
    ),
    "metrics": (
        "metric_exporter",
        "OTLPMetricExporter",
        "opentelemetry.sdk.metrics.export",
        "ConsoleMetricExporter",
    ),
}
"""By signal: module and class of the OTLP exporter, then of the console exporter."""
_SEVERITIES = {
    logging.DEBUG: SeverityNumber.DEBUG,
    logging.INFO: SeverityNumber.INFO,
    logging.WARNING: SeverityNumber.WARN,
    logging.ERROR: SeverityNumber.ERROR,
    logging.CRITICAL: SeverityNumber.FATAL,
}
_SCOPE = InstrumentationScope("bridgehead", __version__)

log = logs.logger("host.telemetry")


class Telemetry:
    """The exporters of one process; `tracer` is None unless spans are exported."""

    def __init__(self, exporters: Mapping[str, str], settings: Mapping[str, str]) -> None:
        logs.adopt("opentelemetry")  # which otherwise logs an unreachable collector in its own format
        has_name = "OTEL_SERVICE_NAME" in settings or "service.name" in settings.get(
            "OTEL_RESOURCE_ATTRIBUTES", ""
        )
        name = {} if has_name else {SERVICE_NAME: "bridgehead"}
        self._resource = Resource.create({**name, SERVICE_VERSION: __version__})
        self._settings = settings
        self._closing: list[Callable[[], object]] = []
        """Run in this order at the end, on a thread that the process does not wait for."""
        self._started_ns = time.time_ns()
        self._metric_exporter: Any = None
        self.tracer: Tracer | None = None
        for signal, kind in exporters.items():
            exporter = self._make_exporter(signal, kind)
            if exporter is None:
                continue
            # `shutdown_on_exit` would wait for the collector at exit; `close` waits a limited time.
            if signal == "traces":
                provider = TracerProvider(resource=self._resource, shutdown_on_exit=False)
                processor = BatchSpanProcessor(exporter)
                self._closing.append(processor.shutdown)
                self.tracer = Tracer(provider, processor)
            elif signal == "logs":
                log_provider = LoggerProvider(resource=self._resource, shutdown_on_exit=False)
                log_provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
                handler = _ExportHandler(log_provider.get_logger("bridgehead", __version__))
                logs.add_handler(handler)
                # First our handler: a line that the shutdown itself logs must not come back here.
                self._closing += [partial(logs.remove_handler, handler), log_provider.shutdown]
            else:
                self._metric_exporter = exporter
                self._closing.append(exporter.shutdown)

    def _make_exporter(self, signal: str, kind: str) -> Any:
        module, name, console_module, console = _EXPORTERS[signal]
        if kind == "console":
            return getattr(import_module(console_module), console)()
        protocol = (
            self._settings.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL")
            or self._settings.get("OTEL_EXPORTER_OTLP_PROTOCOL")
            or "http/protobuf"
        )
        if kind != "otlp" or protocol not in {"http/protobuf", "grpc"}:
            log.warn("this exporter is not known, so nothing is exported", signal=signal, exporter=kind)
            return None
        package = "http" if protocol == "http/protobuf" else "grpc"
        return getattr(import_module(f"opentelemetry.exporter.otlp.proto.{package}.{module}"), name)()

    async def send_metrics(self, sources: Callable[[], Iterable[tuple[SourceLabels, Metrics]]]) -> None:
        """Export all metrics every `OTEL_METRIC_EXPORT_INTERVAL` ms until cancelled, and once at the end."""
        if self._metric_exporter is None:
            return
        interval_ms = _DEFAULT_INTERVAL_MS
        with suppress(ValueError):
            interval_ms = float(self._settings.get("OTEL_METRIC_EXPORT_INTERVAL", _DEFAULT_INTERVAL_MS))
        try:
            while True:
                await asyncio.sleep(interval_ms / 1000)
                # Read on the loop, where nothing changes the counters meanwhile; the SDK's periodic reader
                # would read them from its own thread. Sent from a thread, because sending may wait.
                snapshot = self._read_metrics(sources())
                await asyncio.to_thread(self._metric_exporter.export, snapshot)
        finally:
            # Read here, while the bridges still exist, and sent by `close` before the exporter is shut down.
            last = self._read_metrics(sources())
            self._closing.insert(0, lambda: self._metric_exporter.export(last))

    def _read_metrics(self, sources: Iterable[tuple[SourceLabels, Metrics]]) -> metrics_sdk.MetricsData:
        """Take a snapshot; metrics of the same name, from several bridges, become one."""
        families: dict[str, list[tuple[SourceLabels, Metric]]] = {}
        for labels, metrics in sources:
            for metric in metrics.all:
                families.setdefault(metric.name, []).append((labels, metric))
        now_ns = time.time_ns()
        snapshot = [self._read_family(name, members, now_ns) for name, members in families.items()]
        scope = metrics_sdk.ScopeMetrics(_SCOPE, snapshot, "")
        return metrics_sdk.MetricsData([metrics_sdk.ResourceMetrics(self._resource, [scope], "")])

    def _read_family(
        self, name: str, members: list[tuple[SourceLabels, Metric]], now_ns: int
    ) -> metrics_sdk.Metric:
        first = members[0][1]
        numbers: list[metrics_sdk.NumberDataPoint] = []
        histograms: list[metrics_sdk.HistogramDataPoint] = []
        for labels, metric in members:
            if metric.kind != first.kind:
                continue  # OTLP allows one kind per metric
            if not isinstance(metric, Histogram):
                for values, value in metric.values.items():
                    attributes = dict(labels) | dict(zip(metric.labels, values, strict=False))
                    numbers.append(metrics_sdk.NumberDataPoint(attributes, self._started_ns, now_ns, value))
                continue
            for values, counts in metric.counts.items():
                histograms.append(
                    metrics_sdk.HistogramDataPoint(
                        attributes=dict(labels) | dict(zip(metric.labels, values, strict=False)),
                        start_time_unix_nano=self._started_ns,
                        time_unix_nano=now_ns,
                        count=sum(counts),
                        sum=metric.sums[values],
                        bucket_counts=list(counts),
                        explicit_bounds=list(metric.bounds),
                        # Optional in OTLP, and not counted here: None leaves the fields out of the message.
                        min=None,  # type: ignore[arg-type]
                        max=None,  # type: ignore[arg-type]
                    )
                )
        # Our counters never reset, so OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta has no effect.
        cumulative = metrics_sdk.AggregationTemporality.CUMULATIVE
        data: Any
        if isinstance(first, Histogram):
            data = metrics_sdk.Histogram(histograms, cumulative)
        elif first.kind == "counter":
            data = metrics_sdk.Sum(numbers, cumulative, is_monotonic=True)
        else:
            data = metrics_sdk.Gauge(numbers)
        return metrics_sdk.Metric(name, first.about, "s" if name.endswith("_seconds") else "", data)

    def close(self) -> None:
        """Flush the exporters; wait `CLOSE_SECONDS` at most."""

        def close_all() -> None:
            for close in self._closing:
                with suppress(Exception):
                    close()

        # A daemon thread: the process does not wait for a slow collector beyond `CLOSE_SECONDS`.
        closing = Thread(target=close_all, daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)


class _ExportHandler(logging.Handler):
    """Exports every log line as an OpenTelemetry log record with its fields."""

    def __init__(self, exported: OtelLogger) -> None:
        super().__init__()
        self._exported = exported

    def emit(self, record: logging.LogRecord) -> None:
        """Export a record; a failure is reported as by every handler of the standard library."""
        try:
            # Lines that are logged in batches share one record and differ in their fields.
            lines = getattr(record, "lines", None)
            if lines is None:
                lines = [logs.context_fields() | getattr(record, "fields", {})]
            for fields in lines:
                self._exported.emit(_make_log_record(record, dict(fields)))
        except Exception:  # noqa: BLE001
            self.handleError(record)


def _make_log_record(record: logging.LogRecord, fields: dict[str, Any]) -> LogRecord:
    happened = fields.pop("time", None) or record.created
    trace, span = str(fields.pop("trace", "") or "0"), str(fields.pop("span", "") or "1")
    attributes: dict[str, Any] = {
        name: value if isinstance(value, str | bool | int | float) else str(value)
        for name, value in logs.clean(fields).items()
        if value is not None
    }
    if record.exc_info and record.exc_info[0] is not None:
        attributes["exception.type"] = record.exc_info[0].__name__
        attributes["exception.stacktrace"] = logs.scrubbed(
            logging.Formatter().formatException(record.exc_info)
        )
    attributes["logger.name"] = record.name
    context = None
    if int(trace, 16):
        span_context = SpanContext(
            int(trace, 16), int(span, 16), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)
        )
        context = set_span_in_context(NonRecordingSpan(span_context))
    return LogRecord(
        timestamp=int(happened * 1_000_000_000),
        severity_text=record.levelname,
        severity_number=_SEVERITIES.get(record.levelno, SeverityNumber.INFO),
        body=logs.scrubbed(record.getMessage()),
        attributes=attributes,
        context=context,
    )
