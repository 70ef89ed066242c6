"""Tracing: the trace that a client has begun reaches the tool, and a span of the call reaches a collector."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.host.conftest import Dial
from tests.host.test_command import post
from tests.support.host_command import serving
from tests.support.host_server import hosting
from tests.support.http_server import mirrored
from tests.support.messages import Json, call, stateless
from tests.support.waiting import PATIENCE, until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def traced(tool: str) -> Json:
    """Make a call within a trace."""
    params = call(tool, {"text": "hi"})
    return stateless("tools/call", {**params, "_meta": {"traceparent": PARENT, "tracestate": "a=b"}})


class Collector:
    """Takes spans over OTLP."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].split("\r\n")[0])
        body = await reader.readexactly(length)
        assert head.startswith("post /v1/traces ")
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            named = {one.key: one.value.string_value for one in resource.resource.attributes}
            self.services.add(named["service.name"])
            for scope in resource.scope_spans:
                self.spans += scope.spans
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    collector = Collector()
    server = await asyncio.start_server(collector.serve, "127.0.0.1", 0)
    collector.port = server.sockets[0].getsockname()[1]
    async with server:
        yield collector


async def test_the_trace_of_a_client_reaches_the_tool(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        message = traced("alpha_echo")
        assert (await host.post("/mcp", message, mirrored(message))).status == 200
        assert host.far["alpha"].traces == [{"traceparent": PARENT, "tracestate": "a=b"}]


async def test_each_call_is_a_span_of_its_clients_trace(tmp_path: Path, dial: Dial) -> None:
    async with collecting() as collector:
        endpoint = f"http://127.0.0.1:{collector.port}"
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


async def test_the_settings_of_opentelemetry_decide_also_in_a_file(tmp_path: Path, dial: Dial) -> None:
    async with collecting() as collector:
        (tmp_path / ".env").write_text(
            f"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:{collector.port}/v1/traces\n"
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
    path = f"{tmp_path}:{Path(__file__).parents[3] / 'src'}"
    with serving(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9", PYTHONPATH=path) as host:
        (told,) = [line for line in host.lines if line["event"].startswith("OTEL_EXPORTER_OTLP_ENDPOINT")]

    assert told["next_step"] == 'pip install "bridgehead[otel]"'
    assert told["missing"] == "opentelemetry"
