"""An OpenTelemetry collector for tests: takes spans, log records and metrics by OTLP over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """Takes what is exported."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.records: list[LogRecord] = []
        self.metrics: dict[str, Metric] = {}
        """The last of each name."""
        self.services: set[str] = set()
        self.port = 0

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        body = await reader.readexactly(int(head.partition("content-length:")[2].split("\r\n")[0]))
        self._take(head.split()[1], body)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    def _take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.services.add(attributes_of(resource.resource)["service.name"])
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        elif path == "/v1/logs":
            for logged in ExportLogsServiceRequest.FromString(body).resource_logs:
                self.records += [record for scope in logged.scope_logs for record in scope.log_records]
        else:
            assert path == "/v1/metrics"
            for counted in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.metrics |= {one.name: one for scope in counted.scope_metrics for one in scope.metrics}


def attributes_of(one: Any) -> dict[str, Any]:
    """Read attributes as they are given."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in one.attributes}


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """Take what is sent while the block runs."""
    collector = Collector()
    server = await asyncio.start_server(collector.serve, "127.0.0.1", 0)
    collector.port = server.sockets[0].getsockname()[1]
    async with server:
        yield collector
