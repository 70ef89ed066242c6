"""Exporting: spans, log lines and metrics reach a collector as OpenTelemetry's own settings say."""

import asyncio
import os
from pathlib import Path

import pytest

from bridgehead.host.telemetry.exporting import find_endpoint, wanted_signals
from tests.host.conftest import Dial
from tests.host.telemetry.test_tracing import traced
from tests.host.test_command import post
from tests.support.host_command import serving
from tests.support.http_server import mirrored
from tests.support.messages import stateless
from tests.support.otel_collector import collecting
from tests.support.waiting import until

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {}),
        ({ENDPOINT: "http://c"}, {"traces": "otlp"}),
        ({ENDPOINT: "http://c", "OTEL_SDK_DISABLED": "true"}, {}),
        (
            {ENDPOINT: "http://c", "OTEL_TRACES_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "otlp"},
            {"logs": "otlp"},
        ),
        ({"OTEL_METRICS_EXPORTER": "console"}, {"metrics": "console"}),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c/v1/metrics"}, {"metrics": "otlp"}),
    ],
)
def test_the_settings_of_opentelemetry_say_what_is_exported(
    given: dict[str, str], wanted: dict[str, str]
) -> None:
    assert wanted_signals(given) == wanted


def test_the_endpoint_of_a_signal_is_its_own_or_below_the_common_one() -> None:
    assert find_endpoint({ENDPOINT: "http://c:4318/"}, "logs") == "http://c:4318/v1/logs"
    assert find_endpoint({"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://d/x"}, "logs") == "http://d/x"


async def test_the_settings_of_opentelemetry_decide_also_in_a_file(tmp_path: Path, dial: Dial) -> None:
    async with collecting() as collector:
        (tmp_path / ".env").write_text(
            f"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT={collector.url}/v1/traces\n"
            "OTEL_EXPORTER_OTLP_COMPRESSION=none\nOTEL_SERVICE_NAME=team-tools\n"
        )
        with serving(tmp_path, cwd=tmp_path) as host:
            http = dial(host.port)
            message = traced("alpha_echo")
            await (await post(http, message, mirrored(message))).body()
            read = stateless("resources/read", {"uri": "alpha://note"})
            await (await post(http, read, mirrored(read))).body()
            assert await asyncio.to_thread(host.end) == 0
            await until(lambda: len(collector.spans) == 2)

    assert collector.services == {"team-tools"}
    tool, resource = ({a.key: a.value.string_value for a in span.attributes} for span in collector.spans)
    assert (tool["gen_ai.tool.name"], tool["mcp.method.name"]) == ("alpha_echo", "tools/call")
    assert tool["mcp.protocol.version"] == "2026-07-28"
    assert tool["bridgehead.request"]
    assert (resource["mcp.method.name"], resource["mcp.resource.uri"]) == ("resources/read", "alpha://note")


async def test_a_dead_collector_breaks_neither_the_log_nor_the_end(tmp_path: Path, dial: Dial) -> None:
    with serving(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9") as host:
        message = traced("alpha_echo")
        await (await post(dial(host.port), message, mirrored(message))).body()
        assert await asyncio.to_thread(host.end) == 0

    assert [line for line in host.lines if "level" not in line] == [], "every line is JSON"


def test_without_the_extra_it_serves_and_says_what_to_install(tmp_path: Path) -> None:
    hidden = tmp_path / "opentelemetry" / "__init__.py"
    hidden.parent.mkdir()
    hidden.write_text("raise ModuleNotFoundError('gone', name='opentelemetry')")
    path = f"{tmp_path}{os.pathsep}{Path(__file__).parents[3] / 'src'}"
    with serving(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9", PYTHONPATH=path) as host:
        (told,) = [line for line in host.lines if line["event"].startswith("OTEL_EXPORTER_OTLP_ENDPOINT")]

    assert told["next_step"] == 'pip install "bridgehead[otel]"'
    assert told["missing"] == "opentelemetry"


async def test_with_a_dead_collector_logs_and_metrics_do_not_hold_the_end_up(tmp_path: Path) -> None:
    wanted = {
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_METRIC_EXPORT_INTERVAL": "20",
    }
    with serving(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9", settings=wanted) as host:
        await asyncio.to_thread(host.wait_for_level, "error")
        assert await asyncio.to_thread(host.end) == 0

    assert [line for line in host.lines if "level" not in line] == [], "every line is JSON"
