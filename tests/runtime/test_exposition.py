"""The metrics page as it is written: families, histograms, several processes, OpenMetrics."""

from pathlib import Path

from bridgehead.runtime.exposition import to_openmetrics, write_metrics
from bridgehead.runtime.metrics import Metrics
from tests.host.telemetry.test_metrics import samples
from tests.support.host_server import hosting


def test_a_histogram_is_written_as_counts_up_to_each_bound() -> None:
    metrics = Metrics()
    took = metrics.histogram("took", "How long.", "tool")
    for value in (0.0005, 0.003, 0.003, 100.0):
        took.observe(value, "x")

    found = samples(write_metrics([((), metrics)]).decode())

    assert found['took_bucket{tool="x",le="0.001"}'] == 1
    assert found['took_bucket{tool="x",le="0.0025"}'] == 1
    assert found['took_bucket{tool="x",le="0.005"}'] == 3
    assert found['took_bucket{tool="x",le="60"}'] == 3
    assert found['took_bucket{tool="x",le="+Inf"}'] == 4
    assert found['took_count{tool="x"}'] == 4
    assert found['took_sum{tool="x"}'] == 0.0005 + 0.003 + 0.003 + 100.0


def test_a_metric_of_another_kind_under_the_same_name_is_left_out() -> None:
    one, other = Metrics(), Metrics()
    one.counter("same", "Counted.").add()
    other.gauge("same", "Looked at.", lambda: {(): 5.0})

    found = samples(write_metrics([((("bridge", "one"),), one), ((("bridge", "other"),), other)]).decode())

    assert found == {'same{bridge="one"}': 1}


def test_a_separator_in_a_label_begins_no_line_of_openmetrics() -> None:
    metrics = Metrics()
    metrics.counter("calls_total", "Calls.", "tool").add("a\u2028b")
    page = write_metrics([((), metrics)])

    assert to_openmetrics(page).decode() == (
        '# HELP calls Calls.\n# TYPE calls counter\ncalls_total{tool="a\u2028b"} 1\n# EOF\n'
    )


async def test_openmetrics_is_given_to_who_asks_for_it(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        await host.try_call("/mcp", "alpha_echo")
        response = await host.get("/metrics", {"Accept": "application/openmetrics-text; version=1.0.0"})
        page = (await response.body()).decode()

    assert response.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert page.endswith("# EOF\n")
    assert "# TYPE bridgehead_http_requests counter\n" in page
    assert "\nbridgehead_http_requests_total{" in page
