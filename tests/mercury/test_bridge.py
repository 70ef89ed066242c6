"""The manifest of the mercury bridge: its key, the API, and what was used, as a host sees them."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridgehead.host import request
from bridgehead.mcp import Bridge
from bridgehead.mcp.http.message import HeaderPairs, Request, ResponseStream
from bridgehead.mcp.in_memory import connect
from bridgehead.mercury.bridge import far_side, manifest, probe
from bridgehead.mercury.calling import provider
from bridgehead.mercury.simulator import Fault, Simulator
from bridgehead.runtime import events, logs
from bridgehead.runtime.events import Listener
from bridgehead.runtime.metrics import Metrics
from tests.mercury.process import MODEL, environment

pytestmark = pytest.mark.asyncio(loop_scope="module")
HELLO = {"messages": [{"role": "user", "content": "A river in 20 words"}]}


def values(metrics: Metrics) -> dict[str, Any]:
    return {metric.name: metric.values for metric in metrics.all}  # type: ignore[union-attr] # no histogram


def make(environment: dict[str, str], metrics: Metrics) -> Bridge[Any]:
    return manifest.make(manifest.settings(environment), metrics)


async def test_what_was_used_of_each_model_is_counted(api: Simulator, tmp_path: Path) -> None:
    metrics = Metrics()
    made = make(environment(api.url, tmp_path), metrics)
    assert set(map(str, values(metrics).values())) == {"{}"}

    async with connect(made) as client:
        await client.call("mercury_list_models")  # after which the prices are known
        assert not (await client.call("mercury_chat_completion", HELLO)).get("isError")
        service = client.dispatcher.lifespans[made].value
        found = far_side(service)

    used = values(metrics)
    assert used["bridgehead_mercury_calls_total"] == {(MODEL,): 1}
    assert used["bridgehead_mercury_errors_total"] == {(MODEL,): 0}
    assert used["bridgehead_mercury_completion_tokens_total"][(MODEL,)] >= 20
    assert used["bridgehead_mercury_cost_usd_total"][(MODEL,)] > 0
    assert (found.is_up, found.detail) == (True, f"1 key for {api.url}.")
    assert manifest.single_process == ""


async def test_an_api_that_keeps_failing_is_not_there(
    api: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "BREAKER_FAILURES", 1)
    api.faults.always(Fault(status=503))
    settings = environment(api.url, tmp_path, MERCURY_MAX_RETRIES="1")
    made = make(settings, Metrics())
    async with connect(made) as client:
        assert (await client.call("mercury_chat_completion", HELLO))["isError"]
        found = far_side(client.dispatcher.lifespans[made].value)

    assert (found.is_up, "keeps failing" in found.detail) == (False, True)


async def test_without_a_key_there_is_no_far_side(api: Simulator, tmp_path: Path) -> None:
    made = make(environment(api.url, tmp_path, MERCURY_API_KEY=""), Metrics())
    async with connect(made) as client:
        await client.call("mercury_usage", {})
        found = far_side(client.dispatcher.lifespans[made].value)

    assert (found.is_up, "MERCURY_API_KEY" in found.detail) == (False, True)
    assert not far_side(None).is_up


async def test_an_api_that_is_down_or_back_is_known_without_a_call(tmp_path: Path) -> None:
    async with Simulator() as gone:
        url = gone.url
    metrics = Metrics()
    made = make(environment(url, tmp_path), metrics)
    async with connect(made) as client:
        await client.call("mercury_usage")
        service = client.dispatcher.lifespans[made].value
        await probe(service)
        down, shown = far_side(service), values(metrics)
        async with Simulator(port=int(url.rpartition(":")[2].split("/")[0])) as back:
            await probe(service)
            assert not back.requests.to("/chat/completions")
            found = far_side(service)

    assert (down.is_up, "cannot be reached" in down.detail) == (False, True)
    assert shown["bridgehead_mercury_provider_up"] == {("mercury",): 0.0}
    assert shown["bridgehead_mercury_breaker_open"] == {("mercury",): 0.0}
    assert found.is_up


@pytest.mark.parametrize(("status", "is_there"), [(401, False), (404, True), (429, True), (500, False)])
async def test_what_a_check_is_answered_tells_whether_calls_would_be(
    api: Simulator, tmp_path: Path, status: int, *, is_there: bool
) -> None:
    made = make(environment(api.url, tmp_path), Metrics())
    async with connect(made) as client:
        await client.call("mercury_usage")
        service = client.dispatcher.lifespans[made].value
        api.faults.always(Fault(status=status, on="models"))
        await probe(service)

    assert far_side(service).is_up is is_there


async def test_a_breaker_that_opens_is_a_gauge_and_an_event(
    api: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "BREAKER_FAILURES", 1)
    api.faults.always(Fault(status=503))
    settings = environment(api.url, tmp_path, MERCURY_MAX_RETRIES="0")
    metrics, listener = Metrics(), Listener()
    events.feed.join(listener)
    try:
        async with connect(make(settings, metrics)) as client:
            await client.call("mercury_chat_completion", HELLO)
            shown = values(metrics)
    finally:
        events.feed.leave(listener)

    assert shown["bridgehead_mercury_breaker_open"] == {("mercury",): 1.0}
    told = [event.data for event in await listener.take(99) if event.type == "breaker.opened"]
    assert told == [{"bridge": "mercury", "provider": "mercury"}]


class FakeRequest(Request):
    """An HTTP request that nobody answers."""

    async def read(self) -> bytes:
        return b""

    async def open_stream(self, status: int, headers: HeaderPairs) -> ResponseStream:
        raise NotImplementedError


def served(name: str) -> request.HostRequest:
    """Make a request of the host that has an id."""
    return request.HostRequest(FakeRequest("POST", b"/mcp", "/mcp", b"", ()), name, 0.0, "127.0.0.1", "http")


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What is logged meanwhile; other tests get the logging back that they had."""
    root = logging.getLogger(logs.ROOT)
    before = (root.handlers[:], root.level, root.propagate)
    stream = io.StringIO()
    logs.configure("info", "json", stream)
    yield stream
    root.handlers[:], root.level, root.propagate = before


async def test_the_audit_line_of_a_call_names_the_request_that_made_it(
    api: Simulator, tmp_path: Path, log: io.StringIO
) -> None:
    logs.add_context(request.log_fields)
    made = make(environment(api.url, tmp_path, CACHE_COMPLETIONS="1"), Metrics())
    async with connect(made) as client:
        for name in ("trip-1", "trip-2", "trip-3"):
            was = request.current_request.set(served(name))
            await client.call("mercury_chat_completion", HELLO)
            request.current_request.reset(was)

    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [line["request"] for line in lines if line["event"] == "call"] == ["trip-1", "trip-2", "trip-3"]


@pytest.mark.parametrize(
    ("parent", "is_passed"),
    [("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", True), ("00-x\r\nEvil: 1", False)],
)
async def test_the_trace_of_a_caller_is_passed_on_to_the_api(
    api: Simulator, tmp_path: Path, parent: str, *, is_passed: bool
) -> None:
    async with connect(make(environment(api.url, tmp_path), Metrics())) as client:
        await client.call(
            "mercury_chat_completion", HELLO, _meta={"traceparent": parent, "tracestate": "a=b"}
        )

    *_, asked = (one for one in api.requests if one.path.endswith("/chat/completions"))
    assert (asked.headers.get("traceparent") == parent) is is_passed
    assert (asked.headers.get("tracestate") == "a=b") is is_passed
