"""An OpenTelemetry collector for tests: takes spans, log records and metrics by OTLP over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.fake_api import Answer, Request, fake_api


class Collector:
    """Takes what is exported."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.records: list[LogRecord] = []
        self.metrics: dict[str, Metric] = {}
        """The last of each name."""
        self.services: set[str] = set()
        self.url = ""

    async def respond(self, request: Request) -> Answer:
        """Take one request."""
        if request.path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(request.body).resource_spans:
                self.services.add(attributes_of(resource.resource)["service.name"])
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        elif request.path == "/v1/logs":
            for logged in ExportLogsServiceRequest.FromString(request.body).resource_logs:
                self.records += [record for scope in logged.scope_logs for record in scope.log_records]
        else:
            assert request.path == "/v1/metrics"
            for counted in ExportMetricsServiceRequest.FromString(request.body).resource_metrics:
                self.metrics |= {one.name: one for scope in counted.scope_metrics for one in scope.metrics}
        return Answer(closes=True)


def attributes_of(one: Any) -> dict[str, Any]:
    """Read attributes as they are given."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in one.attributes}


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """Take what is sent while the block runs."""
    collector = Collector()
    async with fake_api(collector.respond) as api:
        collector.url = api.url
        yield collector
