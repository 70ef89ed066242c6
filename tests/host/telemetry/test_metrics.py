"""Metrics page: everything that is counted, as Prometheus reads it."""

import asyncio
import re
import sys
from pathlib import Path

from bridgehead.host.telemetry.metrics import OTHERS, HostMetrics
from bridgehead.mcp import Limits
from bridgehead.mcp.http.accounts import Accounts
from bridgehead.runtime.exposition import write_metrics
from tests.support.host_bridges import StandIns
from tests.support.host_server import Host, bearer, hosting
from tests.support.http_client import Headers
from tests.support.http_server import mirrored
from tests.support.messages import call, request, stateless
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
    assert found['tool_calls_total{bridge="alpha",tool="alpha_echo"}'] == 2
    assert found['tool_calls_total{bridge="beta",tool="beta_later"}'] == 2
    assert found['tool_errors_total{bridge="beta",tool="beta_later"}'] == 1
    assert found['bridgehead_tool_seconds_count{bridge="beta",tool="beta_later",outcome="ok"}'] == 1
    assert found['bridgehead_tool_seconds_count{bridge="beta",tool="beta_later",outcome="error"}'] == 1
    assert found['tool_calls_total{bridge="alpha",tool="alpha_either"}'] == 2
    assert not any(key.startswith("bridgehead_tool_calls_total") for key in found), "one counter, not two"
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
        key = 'bridgehead_tool_seconds_count{bridge="alpha",tool="alpha_wait",outcome="cancelled"}'
        async with asyncio.timeout(PATIENCE):
            while key not in (found := await scraped(host)):
                await asyncio.sleep(0.01)

    assert during['bridgehead_tool_calls_in_flight{bridge="alpha"}'] == 1
    assert during['bridgehead_client_open{client="127.0.0.1",what="requests"}'] == 1
    assert found['bridgehead_tool_calls_in_flight{bridge="alpha"}'] == 0


def test_very_many_callers_do_not_make_very_many_samples() -> None:
    metrics = HostMetrics(Accounts(Limits()))
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

    assert found["process_cpu_seconds_total"] > 0
    if sys.platform == "linux":  # which has these two in /proc
        assert found["process_resident_memory_bytes"] > 1_000_000
        assert found["process_open_fds"] > 3
    assert any(key.startswith("bridgehead_build_info{version=") for key in found)


async def test_bytes_and_time_in_threads_are_shown_by_caller(tmp_path: Path) -> None:
    settings = {"BRIDGEHEAD_MEMORY_LIMIT": "1024mib"}
    tokens = {"alice": {"metrics": True}}
    async with hosting(tmp_path, settings, stand_ins=StandIns("slow"), tokens=tokens) as host:
        token = bearer(host.secrets["alice"])
        asked = await host.post_call("/mcp", call("slow_work", {"text": "0.01"}), token)
        assert asked.status == 200
        await asked.body()
        session = await host.session("/mcp", token)
        events: Headers = {"Accept": "text/event-stream, application/json"}
        message = request("tools/call", call("slow_echo", {"text": "x" * 10_000}), 7)
        await (await host.post("/mcp", message, {**session, **token, **events})).body()
        found = await scraped(host, host.secrets["alice"])

    assert found['bridgehead_client_open{client="alice",what="bytes"}'] > 10_000
    assert found["bridgehead_held_bytes"] == found['bridgehead_client_open{client="alice",what="bytes"}']
    assert found['bridgehead_limit{scope="client",what="bytes"}'] == 128 * 1024 * 1024
    assert found['bridgehead_limit{scope="all",what="memory"}'] == 1024 * 1024 * 1024
    assert found['bridgehead_client_thread_seconds_total{client="alice"}'] > 0


async def test_what_a_caller_has_open_is_shown_beside_its_limits(tmp_path: Path) -> None:
    limits = {"BRIDGEHEAD_SESSIONS_PER_CLIENT": "7", "BRIDGEHEAD_CONNECTIONS": "18"}
    async with hosting(tmp_path, limits, tokens={"alice": {"metrics": True}}) as host:
        token = bearer(host.secrets["alice"])
        for _ in range(2):
            await host.session("/mcp", token)
        found = await scraped(host, host.secrets["alice"])

    assert found['bridgehead_client_open{client="alice",what="sessions"}'] == 2
    assert found['bridgehead_client_open{client="127.0.0.1",what="connections"}'] >= 1
    assert found['bridgehead_limit{scope="client",what="sessions"}'] == 7
    assert found['bridgehead_limit{scope="client",what="connections"}'] == 9
    assert found['bridgehead_limit{scope="all",what="sessions"}'] == 1000


def test_callers_beyond_the_hundred_with_the_most_are_shown_together() -> None:
    metrics = HostMetrics(Accounts(Limits()))
    metrics.connections.update({f"10.0.0.{number}": number for number in range(1, 121)})

    found = samples(write_metrics([((), metrics.metrics)]).decode())

    shown = {key: value for key, value in found.items() if 'what="connections"' in key and "open" in key}
    assert len(shown) == 101
    assert shown[f'bridgehead_client_open{{client="{OTHERS}",what="connections"}}'] == sum(range(1, 21))
