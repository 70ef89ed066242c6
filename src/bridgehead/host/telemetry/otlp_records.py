"""OTLP records: our log lines and our metrics in the shapes that an OpenTelemetry exporter takes.

Log lines are scrubbed as those on standard error are. Metrics are read from our own counters, so nothing is
counted twice and no call pays for it. Imported only where something is exported.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import export as otlp
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from bridgehead import __version__
from bridgehead.runtime import logs
from bridgehead.runtime.metrics import Histogram, Metric, Metrics

from .exposition import Given

if TYPE_CHECKING:
    from opentelemetry._logs import Logger as OtelLogger
    from opentelemetry.sdk.resources import Resource

_NANO = 1_000_000_000
_SEVERITIES = {
    logging.DEBUG: SeverityNumber.DEBUG,
    logging.INFO: SeverityNumber.INFO,
    logging.WARNING: SeverityNumber.WARN,
    logging.ERROR: SeverityNumber.ERROR,
    logging.CRITICAL: SeverityNumber.FATAL,
}
_HEXADECIMAL = 16
_SCOPE = InstrumentationScope("bridgehead", __version__)


class ExportHandler(logging.Handler):
    """Hands every line to OpenTelemetry, as an event with its fields."""

    def __init__(self, exported: OtelLogger) -> None:
        super().__init__()
        self._exported = exported

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a record over; one that cannot be is as lost as with any other handler."""
        try:
            lines = getattr(record, "lines", None)
            if lines is None:
                lines = [logs.context_fields() | getattr(record, "fields", {})]
            for fields in lines:
                self._exported.emit(_make_log_record(record, dict(fields)))
        except Exception:  # noqa: BLE001  (as every handler of the standard library does)
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
    return LogRecord(
        timestamp=int(happened * _NANO),
        severity_text=record.levelname,
        severity_number=_SEVERITIES.get(record.levelno, SeverityNumber.INFO),
        body=logs.scrubbed(record.getMessage()),
        attributes=attributes,
        context=_make_context(int(trace, _HEXADECIMAL), int(span, _HEXADECIMAL)),
    )


def _make_context(trace_id: int, span_id: int) -> Context | None:
    if not trace_id:
        return None
    context = SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(context))


class MetricsExport:
    """Reads our metrics and sends them."""

    def __init__(self, exporter: Any, resource: Resource) -> None:
        self._exporter = exporter
        self._resource = resource
        self._started = time.time_ns()

    def read(self, sources: Iterable[tuple[Given, Metrics]]) -> otlp.MetricsData:
        """Take down what everything is now; the metrics of one name become one."""
        families: dict[str, list[tuple[Given, Metric]]] = {}
        for given, metrics in sources:
            for metric in metrics.all:
                families.setdefault(metric.name, []).append((given, metric))
        made = [self._make(name, members, time.time_ns()) for name, members in families.items()]
        scope = otlp.ScopeMetrics(_SCOPE, made, "")
        return otlp.MetricsData([otlp.ResourceMetrics(self._resource, [scope], "")])

    def send(self, data: otlp.MetricsData) -> None:
        """Send what was read; waits for the collector, within the exporter's own limits."""
        self._exporter.export(data)

    def _make(self, name: str, members: list[tuple[Given, Metric]], now: int) -> otlp.Metric:
        first = members[0][1]
        same = [(given, metric) for given, metric in members if metric.kind == first.kind]
        cumulative = otlp.AggregationTemporality.CUMULATIVE
        data: Any
        if isinstance(first, Histogram):
            histograms = [
                point
                for given, metric in same
                if isinstance(metric, Histogram)
                for point in self._histogram_points(given, metric, now)
            ]
            data = otlp.Histogram(histograms, cumulative)
        else:
            points = [point for given, metric in same for point in self._points(given, metric, now)]
            data = otlp.Sum(points, cumulative, True) if first.kind == "counter" else otlp.Gauge(points)  # noqa: FBT003
        return otlp.Metric(name, first.about, "s" if name.endswith("_seconds") else "", data)

    def _points(self, given: Given, metric: Metric, now: int) -> Iterator[otlp.NumberDataPoint]:
        if isinstance(metric, Histogram):
            return
        for labels, value in metric.values.items():
            attributes = dict(given) | dict(zip(metric.labels, labels, strict=False))
            yield otlp.NumberDataPoint(attributes, self._started, now, value)

    def _histogram_points(
        self, given: Given, metric: Histogram, now: int
    ) -> Iterator[otlp.HistogramDataPoint]:
        for labels, counts in metric.counts.items():
            attributes = dict(given) | dict(zip(metric.labels, labels, strict=False))
            yield otlp.HistogramDataPoint(
                attributes=attributes,
                start_time_unix_nano=self._started,
                time_unix_nano=now,
                count=sum(counts),
                sum=metric.sums[labels],
                bucket_counts=list(counts),
                explicit_bounds=list(metric.bounds),
                min=0.0,
                max=0.0,
            )
