"""OTLP: log lines and metrics as a collector gets them."""

import asyncio
from pathlib import Path

from tests.host.conftest import Dial
from tests.host.telemetry.test_tracing import PLAIN, TRACE, traced
from tests.host.test_command import post
from tests.support.host_command import serving
from tests.support.http_server import mirrored
from tests.support.otel_collector import attributes_of, collecting
from tests.support.waiting import until


async def test_log_lines_and_metrics_are_exported_where_that_is_asked_for(tmp_path: Path, dial: Dial) -> None:
    wanted = {
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_METRIC_EXPORT_INTERVAL": "50",
    }
    async with collecting() as collector:
        with serving(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, settings=PLAIN | wanted) as host:
            message = traced("alpha_bug")
            message["params"]["arguments"] = {}
            await (await post(dial(host.port), message, mirrored(message))).body()
            await until(lambda: "tool_calls_total" in collector.metrics)  # while it runs
            assert await asyncio.to_thread(host.end) == 0
            await until(lambda: any(record.body.string_value == "ending" for record in collector.records))

    (line,) = [one for one in collector.records if one.body.string_value.startswith("bug ")]
    assert line.trace_id.hex() == TRACE
    assert line.span_id == collector.spans[0].span_id
    (point,) = collector.metrics["tool_calls_total"].sum.data_points
    assert (point.as_int, attributes_of(point)) == (1, {"bridge": "alpha", "tool": "alpha_bug"})
    (took,) = collector.metrics["bridgehead_tool_seconds"].histogram.data_points
    assert (took.count, sum(took.bucket_counts)) == (1, 1)
    assert not took.HasField("min"), "not counted, so not claimed to be 0"
    assert not took.HasField("max")
    assert collector.metrics["process_start_time_seconds"].gauge.data_points[0].as_double > 0


async def test_a_secret_is_not_exported_with_a_line(tmp_path: Path) -> None:
    secret = "sk-exported-0123456789"  # noqa: S105 - planted
    async with collecting() as collector:
        with serving(
            tmp_path,
            OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=f"{collector.url}/v1/logs",
            MERCURY_API_KEY=secret,
            MERCURY_API_URL=f"http://user:{secret}@127.0.0.1:9/v1",
            REAL_BRIDGES="mercury",
            settings=PLAIN,
        ) as host:
            assert await asyncio.to_thread(host.end) == 0
            await until(lambda: any(record.body.string_value == "ending" for record in collector.records))

    assert len(collector.records) > 3
    assert secret not in str(collector.records)
