"""Exporting: spans, log lines and metrics sent to an OpenTelemetry collector, as its own settings say.

Needs the extra `otel`. Spans are sent where an endpoint is set or `OTEL_TRACES_EXPORTER` asks for it; logs
and metrics where `OTEL_LOGS_EXPORTER` or `OTEL_METRICS_EXPORTER` does, or an endpoint of their own is set.
OpenTelemetry's own settings decide everything else too, in the environment or in `.env`. A collector that is
away costs what was to be sent, and nothing else.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any

from bridgehead import __version__
from bridgehead.runtime import logs

from .exposition import Given

if TYPE_CHECKING:
    from bridgehead.runtime.metrics import Metrics

    from .tracing import Tracer

_PREFIX = "OTEL_"
_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SIGNALS = ("traces", "logs", "metrics")
CLOSE_SECONDS = 3.0
"""How long the end of the process waits for a collector."""
_INTERVAL_MS = 60_000.0
_CLASSES = {
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
"""By signal, where its exporters are."""
Sources = Callable[[], Iterable[tuple[Given, "Metrics"]]]

log = logs.logger("host.telemetry")


def wanted_signals(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what is to be exported, and by which exporter: otlp or console."""
    own = _own(environment)
    if own.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return {}
    found = {}
    for signal in SIGNALS:
        asked = own.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip().lower()
        has_endpoint = f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT" in own
        by_default = has_endpoint or (signal == "traces" and _ENDPOINT in own)
        if asked != "none" and (asked or by_default):
            found[signal] = asked or "otlp"
    return found


def find_endpoint(environment: Mapping[str, str], signal: str) -> str:
    """Return where a signal is sent to by OTLP over HTTP."""
    own = _own(environment)
    given = own.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "")
    return given or f"{own.get(_ENDPOINT, 'http://localhost:4318').rstrip('/')}/v1/{signal}"


def _own(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_PREFIX) and value.strip()}


def open_telemetry(environment: Mapping[str, str]) -> Telemetry | None:
    """Make what exports; None where nothing is to be, or nothing is installed to do it with."""
    wanted = wanted_signals(environment)
    if not wanted:
        return None
    own = _own(environment)
    for name, value in own.items():
        os.environ.setdefault(name, value)  # what stands in .env, where the SDK would not look
    has_name = "OTEL_SERVICE_NAME" in own or "service.name" in own.get("OTEL_RESOURCE_ATTRIBUTES", "")
    try:
        return Telemetry(wanted, own, has_name=has_name)
    except ImportError as missing:
        # The setting may be there for everything on this machine, so it does not keep the host from serving.
        log.warn(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but nothing is exported",
            missing=missing.name,
            next_step='pip install "bridgehead[otel]"',
        )
        return None


class Telemetry:
    """What is exported, from threads of the SDK's own."""

    def __init__(self, wanted: Mapping[str, str], own: Mapping[str, str], *, has_name: bool) -> None:
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource

        logs.adopt("opentelemetry")  # which otherwise logs an unreachable collector in its own format
        named = {} if has_name else {SERVICE_NAME: "bridgehead"}
        self._resource = Resource.create({**named, SERVICE_VERSION: __version__})
        self._own = own
        self._closing: list[Callable[[], object]] = []
        self.tracer: Tracer | None = None
        self._metrics: Any = None
        for signal, exporter in wanted.items():
            made = self._make_exporter(signal, exporter)
            if made is not None:
                {"traces": self._open_traces, "logs": self._open_logs, "metrics": self._open_metrics}[signal](
                    made
                )

    def _make_exporter(self, signal: str, kind: str) -> Any:
        module, name, console_module, console = _CLASSES[signal]
        if kind == "console":
            return getattr(import_module(console_module), console)()
        protocol = (
            self._own.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL")
            or self._own.get("OTEL_EXPORTER_OTLP_PROTOCOL")
            or "http/protobuf"
        )
        if kind != "otlp" or protocol not in {"http/protobuf", "grpc"}:
            log.warn("this exporter is not known, so nothing is exported", signal=signal, exporter=kind)
            return None
        package = "http" if protocol == "http/protobuf" else "grpc"
        return getattr(import_module(f"opentelemetry.exporter.otlp.proto.{package}.{module}"), name)()

    # --- spans ---------------------------------------------------------------------------------------------

    def _open_traces(self, exporter: Any) -> None:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from .span_encoding import FastSpanExporter
        from .tracing import Tracer

        provider = TracerProvider(resource=self._resource, shutdown_on_exit=False)
        processor = BatchSpanProcessor(FastSpanExporter(exporter))
        self._closing.append(processor.shutdown)
        self.tracer = Tracer(provider, processor)

    # --- log lines -----------------------------------------------------------------------------------------

    def _open_logs(self, exporter: Any) -> None:
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

        from .otlp_records import ExportHandler

        provider = LoggerProvider(resource=self._resource, shutdown_on_exit=False)
        provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
        handler = ExportHandler(provider.get_logger("bridgehead", __version__))
        logs.add_handler(handler)
        self._closing += [lambda: logs.remove_handler(handler), provider.shutdown]

    # --- metrics -------------------------------------------------------------------------------------------

    def _open_metrics(self, exporter: Any) -> None:
        from .otlp_records import MetricsExport

        self._metrics = MetricsExport(exporter, self._resource)
        self._closing.append(exporter.shutdown)

    async def send_metrics(self, sources: Sources) -> None:
        """Send everything that is counted now and then, until cancelled; then once more."""
        if self._metrics is None:
            return
        interval = _INTERVAL_MS
        with suppress(ValueError):
            interval = float(self._own.get("OTEL_METRIC_EXPORT_INTERVAL", _INTERVAL_MS))
        try:
            while True:
                await asyncio.sleep(interval / 1000)
                # Read here, where nothing else changes it meanwhile; sent from a thread, which may wait.
                await asyncio.to_thread(self._metrics.send, self._metrics.read(sources()))
        finally:
            last = self._metrics.read(sources())
            self._closing.insert(0, lambda: self._metrics.send(last))

    def close(self) -> None:
        """Send what is not sent yet; a collector that does not answer does not hold the process up."""

        def close_all() -> None:
            for close in self._closing:
                with suppress(Exception):
                    close()

        closing = Thread(target=close_all, daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)
