"""Metrics page: everything that is counted, as Prometheus reads it."""

import asyncio
import re
from pathlib import Path

from bridgehead.host.telemetry.metrics import OTHERS, HostMetrics, join_pages, write_metrics
from bridgehead.mcp import Limits
from bridgehead.mcp.http.callers import Callers
from bridgehead.runtime.metrics import Metrics
from tests.support.host_server import Host, bearer, hosting
from tests.support.http_server import mirrored
from tests.support.messages import call, stateless
from tests.support.waiting import PATIENCE

SAMPLE = re.compile(r'^[a-z_]+(?:\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+\})? (?:[0-9.e+-]+|\+Inf|NaN)$')


async def scraped(host: Host, token: str = "") -> dict[str, float]:
    """Read the page as a strict reader would, and return each sample by its name and labels."""
    response = await host.get("/metrics", bearer(token) if token else None)
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return samples((await response.body()).decode())


def samples(text: str) -> dict[str, float]:
    """Read samples, checking their form."""
    found: dict[str, float] = {}
    declared: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name = line.split()[2]
            assert name not in declared, f"{name} is declared twice"
            declared.add(name)
        elif not line.startswith("# HELP "):
            assert SAMPLE.match(line), line
            key, _, value = line.rpartition(" ")
            assert key not in found, f"{key} is there twice"
            found[key] = float(value)
    return found


async def test_requests_calls_and_callers_are_counted(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens={"alice": {"metrics": True}}) as host:
        token = host.secrets["alice"]
        for path in ("/mcp", "/alpha/mcp"):
            await host.ask(path, "tools/call", call("alpha_echo", {"text": "x"}), bearer(token))
        await host.ask("/mcp", "tools/call", call("beta_later", {"text": "x"}), bearer(token))
        for said in ("now", "later"):
            await host.ask("/mcp", "tools/call", call("alpha_either", {"text": said}), bearer(token))
        await host.try_call("/mcp", "alpha_bug", bearer(token))
        host.far["beta"].is_there = False
        await host.ask("/mcp", "tools/call", call("beta_later", {"text": "x"}), bearer(token))
        await host.get("/nowhere")
        await host.try_call("/mcp", "alpha_echo")
        found = await scraped(host, token)

    assert found['bridgehead_http_requests_total{route="/mcp",status="200"}'] == 6
    assert found['bridgehead_http_requests_total{route="/alpha/mcp",status="200"}'] == 1
    assert found['bridgehead_http_requests_total{route="other",status="404"}'] == 1
    assert found['bridgehead_http_request_seconds_count{route="/mcp"}'] == 7
    assert found['bridgehead_client_requests_total{client="alice"}'] == 7
    assert found['bridgehead_tool_calls_total{bridge="alpha",tool="alpha_echo",outcome="ok"}'] == 2
    assert found['bridgehead_tool_calls_total{bridge="beta",tool="beta_later",outcome="ok"}'] == 1
    assert found['bridgehead_tool_calls_total{bridge="beta",tool="beta_later",outcome="error"}'] == 1
    assert found['bridgehead_tool_seconds_count{bridge="beta",tool="beta_later"}'] == 2
    assert found['bridgehead_tool_calls_total{bridge="alpha",tool="alpha_either",outcome="ok"}'] == 2
    assert found['bridgehead_refusals_total{reason="path"}'] == 1
    assert found['bridgehead_auth_failures_total{reason="token_missing"}'] == 1
    assert found['bridgehead_far_side_up{bridge="alpha"}'] == 1
    assert found['bridgehead_far_side_up{bridge="beta"}'] == 0
    assert found['bridgehead_bridge_up{bridge="beta"}'] == 1


async def test_what_bridges_count_themselves_is_there_under_their_names(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        found = await scraped(host)

    assert found['stand_in_made_total{bridge="alpha",why="it \\"was\\"\\nwanted"}'] == 1
    assert found['stand_in_made_total{bridge="beta",why="it \\"was\\"\\nwanted"}'] == 1


async def test_a_call_whose_client_left_is_counted_as_cancelled(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        message = stateless("tools/call", call("alpha_wait", progress="p"))
        response = await host.post("/mcp", message, mirrored(message))
        assert (await response.message())["method"] == "notifications/progress"
        during = await scraped(host)
        await response.hang_up()
        key = 'bridgehead_tool_calls_total{bridge="alpha",tool="alpha_wait",outcome="cancelled"}'
        async with asyncio.timeout(PATIENCE):
            while key not in (found := await scraped(host)):
                await asyncio.sleep(0.01)

    assert during['bridgehead_tool_calls_in_flight{bridge="alpha"}'] == 1
    assert found['bridgehead_tool_calls_in_flight{bridge="alpha"}'] == 0


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


def test_the_texts_of_several_processes_become_one() -> None:
    def text(worker: str, value: int) -> bytes:
        metrics = Metrics()
        metrics.counter("calls_total", "Calls.").add(by=value)
        return write_metrics([((("worker", worker),), metrics)])

    joined = join_pages([text("0", 3), b"", text("1", 4)]).decode()

    assert samples(joined) == {'calls_total{worker="0"}': 3, 'calls_total{worker="1"}': 4}


def test_very_many_callers_do_not_make_very_many_samples() -> None:
    metrics = HostMetrics(Callers(Limits()))
    for number in range(1200):
        metrics.count_request("/mcp", 200, 0.001, f"caller{number}")

    found = samples(write_metrics([((), metrics.metrics)]).decode())

    assert found[f'bridgehead_client_requests_total{{client="{OTHERS}"}}'] == 200
    assert sum("client=" in key for key in found) == 1001


async def test_errors_of_the_protocol_are_counted_by_method_and_code(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        await host.try_call("/mcp", "no_such_tool")
        await host.post_call("/mcp", call("alpha_echo", {"txt": 1}))
        message = stateless("no/such_method")
        await host.post("/mcp", message, mirrored(message))
        found = await scraped(host)

    name = "bridgehead_protocol_errors_total"
    assert found[f'{name}{{method="tools/call",code="-32602"}}'] >= 1
    assert found[f'{name}{{method="(unknown)",code="-32601"}}'] == 1


async def test_the_process_and_what_runs_in_it_are_shown(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        found = await scraped(host)

    assert found["process_resident_memory_bytes"] > 1_000_000
    assert found["process_open_fds"] > 3
    assert any(key.startswith("bridgehead_build_info{version=") for key in found)


async def test_openmetrics_is_given_to_who_asks_for_it(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        await host.try_call("/mcp", "alpha_echo")
        response = await host.get("/metrics", {"Accept": "application/openmetrics-text; version=1.0.0"})
        page = (await response.body()).decode()

    assert response.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert page.endswith("# EOF\n")
    assert "# TYPE bridgehead_http_requests counter\n" in page
    assert "\nbridgehead_http_requests_total{" in page
