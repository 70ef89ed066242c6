"""Tracing: the trace that a client has begun reaches the tool, and a span of the call reaches a collector."""

import asyncio
from pathlib import Path

from bridgehead.mercury.simulator import Simulator
from tests.host.conftest import Dial
from tests.host.test_command import post
from tests.support.host_command import serving
from tests.support.host_server import hosting
from tests.support.http_server import JSON_POST, mirrored
from tests.support.messages import HANDSHAKE, Json, call, encode, initialize, request, stateless
from tests.support.otel_collector import attributes_of, collecting
from tests.support.waiting import PATIENCE, until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
PLAIN = {"OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
METHODS: list[tuple[str, Json]] = [
    ("ping", {}),
    ("tools/list", {}),
    ("tools/call", call("alpha_echo", {"text": "hi"})),
    ("tools/call", call("no_such_tool")),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "alpha://note"}),
    ("resources/subscribe", {"uri": "alpha://note"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "alpha_greet"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "alpha_greet"}, "argument": {"name": "who", "value": ""}},
    ),
    ("no/such_method", {}),
]


def traced(tool: str) -> Json:
    """Make a call within a trace."""
    params = call(tool, {"text": "hi"})
    return stateless("tools/call", {**params, "_meta": {"traceparent": PARENT, "tracestate": "a=b"}})


async def test_the_trace_of_a_client_reaches_the_tool(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        message = traced("alpha_echo")
        assert (await host.post("/mcp", message, mirrored(message))).status == 200
        assert host.far["alpha"].traces == [{"traceparent": PARENT, "tracestate": "a=b"}]


async def test_each_call_is_a_span_of_its_clients_trace(tmp_path: Path, dial: Dial) -> None:
    async with collecting() as collector:
        endpoint = collector.url
        with serving(
            tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, OTEL_EXPORTER_OTLP_COMPRESSION="none"
        ) as host:
            http = dial(host.port)
            for tool in ("alpha_echo", "alpha_later", "alpha_bug"):
                message = traced(tool)
                if tool == "alpha_bug":
                    message["params"]["arguments"] = {}
                await (await post(http, message, mirrored(message))).body()
            assert await asyncio.to_thread(host.end) == 0  # which sends what was not sent yet
            async with asyncio.timeout(PATIENCE):
                while len(collector.spans) < 3:
                    await asyncio.sleep(0.01)

    assert [span.name for span in collector.spans] == [
        "tools/call alpha_echo",
        "tools/call alpha_later",
        "tools/call alpha_bug",
    ]
    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert {span.parent_span_id.hex() for span in collector.spans} == {"00f067aa0ba902b7"}
    assert [span.status.code for span in collector.spans] == [0, 0, 2]
    later = collector.spans[1]
    assert later.end_time_unix_nano - later.start_time_unix_nano >= 1_000_000


async def test_a_trace_in_the_headers_reaches_the_tool_and_the_log(tmp_path: Path) -> None:
    async with hosting(tmp_path, {"BRIDGEHEAD_ACCESS_LOG": "all"}) as host:
        message = stateless("tools/call", call("alpha_echo", {"text": "hi"}))
        headers = {**mirrored(message), "Traceparent": PARENT, "Tracestate": "a=b"}
        assert (await host.post("/mcp", message, headers)).status == 200
        assert host.far["alpha"].traces == [{"traceparent": PARENT, "tracestate": "a=b"}]
        assert host.logged("request")[0]["trace"] == TRACE


async def test_every_method_is_a_span_with_the_conventions_of_mcp(tmp_path: Path, dial: Dial) -> None:
    async with collecting() as collector:
        with serving(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, settings=PLAIN) as host:
            http = dial(host.port)
            opened = await http.request("POST", "/mcp", JSON_POST, encode(initialize()))
            session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "X-Request-Id": "trip-7"}
            await opened.body()
            for method, params in METHODS:
                body = encode(request(method, params))
                await (await http.request("POST", "/mcp", {**JSON_POST, **session}, body)).body()
            discover = stateless("server/discover")
            await (await post(http, discover, mirrored(discover))).body()
            listen = stateless("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            listening = await post(http, listen, mirrored(listen))
            assert await asyncio.to_thread(host.end) == 0
            await listening.body()
            await until(lambda: len(collector.spans) == len(METHODS) + 3)

    spans = {span.name: attributes_of(span) for span in collector.spans}
    assert set(spans) == {
        *("initialize", "server/discover", "ping", "tools/list", "tools/call alpha_echo", "resources/list"),
        *("resources/read", "prompts/list", "prompts/get alpha_greet", "resources/subscribe", "(unknown)"),
        *("tools/call", "resources/templates/list", "completion/complete", "subscriptions/listen"),
    }
    asked = spans["tools/call alpha_echo"]
    assert asked["mcp.session.id"] == session["Mcp-Session-Id"] == spans["initialize"]["mcp.session.id"]
    assert asked["mcp.protocol.version"] == HANDSHAKE
    assert asked["jsonrpc.request.id"].isdigit()
    assert (asked["gen_ai.operation.name"], asked["gen_ai.tool.name"]) == ("execute_tool", "alpha_echo")
    assert (asked["bridgehead.bridge"], asked["bridgehead.request"]) == ("alpha", "trip-7")
    assert spans["initialize"]["mcp.protocol.version"] == HANDSHAKE
    assert spans["server/discover"]["mcp.protocol.version"] == "2026-07-28"
    assert spans["tools/call"]["error.type"] == spans["tools/call"]["rpc.response.status_code"] == "-32602"
    assert spans["(unknown)"]["error.type"] == "-32601"
    assert spans["subscriptions/listen"]["mcp.protocol.version"] == "2026-07-28"
    assert "error.type" not in spans["subscriptions/listen"], "the host ended it in good order"


async def test_what_is_passed_on_and_logged_names_the_span_of_the_call(tmp_path: Path, dial: Dial) -> None:
    async with collecting() as collector:
        with serving(
            tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, BRIDGEHEAD_ACCESS_LOG="all", settings=PLAIN
        ) as host:
            message = traced("alpha_echo")
            message["params"]["arguments"] = {"text": "your trace"}
            answer = await (await post(dial(host.port), message, mirrored(message))).body()
            assert await asyncio.to_thread(host.end) == 0
            await until(lambda: len(collector.spans) == 1)
            (line,) = [line for line in host.lines if line["event"] == "request"]

    (span,) = collector.spans
    assert f"00-{TRACE}-{span.span_id.hex()}-01" in answer.decode()
    assert (line["trace"], line["span"]) == (TRACE, span.span_id.hex())
    assert span.parent_span_id.hex() == PARENT.split("-")[2]


async def test_a_line_names_the_trace_in_the_message_also_without_opentelemetry(tmp_path: Path) -> None:
    async with hosting(tmp_path, {"BRIDGEHEAD_ACCESS_LOG": "all"}) as host:
        for tool in ("alpha_write", "alpha_echo"):
            message = traced(tool)
            assert (await host.post("/mcp", message, mirrored(message))).status == 200
        large = traced("alpha_write")
        large["params"]["arguments"]["text"] = "x" * 1_000_000  # which arrives in pieces
        assert (await host.post("/mcp", large, mirrored(large))).status == 200

        assert [line["trace"] for line in host.logged("request")] == [TRACE] * 3


async def test_the_model_tokens_and_cost_of_a_call_are_in_its_span(tmp_path: Path, dial: Dial) -> None:
    async with collecting() as collector, Simulator() as api:
        more = {
            "MERCURY_API_URL": api.url,
            "MERCURY_API_KEY": "sk-test-0123456789",
            "REAL_BRIDGES": "mercury",
        }
        with serving(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, settings=PLAIN | more) as host:
            http = dial(host.port)
            for model in ("", "no-such-model"):
                hello = {"messages": [{"role": "user", "content": "A river in 20 words"}]}
                params = call("mercury_chat_completion", hello | ({"model": model} if model else {}))
                message = stateless("tools/call", params)
                await (await post(http, message, mirrored(message))).body()
            passed_on = [one.headers.get("traceparent") for one in api.requests.to("/chat/completions")]
            assert await asyncio.to_thread(host.end) == 0
            await until(lambda: len(collector.spans) == 2)

    good, bad = collector.spans
    told = attributes_of(good)
    assert told["gen_ai.request.model"] == told["gen_ai.response.model"] == "mercury-coder-small"
    assert told["gen_ai.usage.input_tokens"] > 0
    assert told["gen_ai.usage.output_tokens"] >= 20
    assert told["bridgehead.cost_usd"] > 0
    assert attributes_of(bad)["error.type"] == "MODEL_NOT_FOUND"
    assert (passed_on[0] or "")[:-2] == f"00-{good.trace_id.hex()}-{good.span_id.hex()}-"
