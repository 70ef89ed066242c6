"""Exporting: decides which signals go to an OpenTelemetry collector. `otlp` does the sending.

Needs the extra `otel`. OpenTelemetry's own variables decide, in the environment or in `.env`: an endpoint or
`OTEL_TRACES_EXPORTER` turns on spans; `OTEL_LOGS_EXPORTER`, `OTEL_METRICS_EXPORTER` or an endpoint of their
own turn on logs and metrics. Importing this module does not import OpenTelemetry.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bridgehead.runtime import logs

if TYPE_CHECKING:
    from .otlp import Telemetry

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SIGNALS = ("traces", "logs", "metrics")

log = logs.logger("host.telemetry")


def wanted_signals(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the signals to export, each with its exporter: otlp or console."""
    settings = _otel_settings(environment)
    if settings.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return {}
    exporters = {}
    for signal in SIGNALS:
        exporter = settings.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip().lower()
        # The common endpoint turns on spans alone: logs and metrics are many times the volume.
        has_endpoint = f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT" in settings or (
            signal == "traces" and _ENDPOINT in settings
        )
        if exporter != "none" and (exporter or has_endpoint):
            exporters[signal] = exporter or "otlp"
    return exporters


def find_endpoint(environment: Mapping[str, str], signal: str) -> str:
    """Return the OTLP/HTTP URL of a signal."""
    settings = _otel_settings(environment)
    own = settings.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "")
    return own or f"{settings.get(_ENDPOINT, 'http://localhost:4318').rstrip('/')}/v1/{signal}"


def _otel_settings(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith("OTEL_") and value.strip()}


def open_telemetry(environment: Mapping[str, str]) -> Telemetry | None:
    """Build the exporters; None if none is configured or OpenTelemetry is not installed."""
    exporters = wanted_signals(environment)
    if not exporters:
        return None
    settings = _otel_settings(environment)
    # The SDK reads os.environ alone, so the values from .env are copied there.
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    try:
        from .otlp import Telemetry  # lazy: OpenTelemetry, 50 ms

        return Telemetry(exporters, settings)
    except ImportError as missing:
        # The variable may be set for everything on this machine: warn, and serve without exporting.
        log.warn(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but nothing is exported",
            missing=missing.name,
            next_step='pip install "bridgehead[otel]"',
        )
        return None
