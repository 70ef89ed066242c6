"""Metrics: what the host counts of requests and of calls, and the page that shows everything that is counted.

The page is in the text format that Prometheus reads, written by hand: the format is a name, labels and a
number a line, and the counters are our own. A metric of a bridge gets the label `bridge`; those of the same
name become one family.
"""

from __future__ import annotations

import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path

from bridgehead import __version__
from bridgehead.mcp import CallHook, Invocation, Outcome, observe_calls
from bridgehead.mcp.http.callers import Callers
from bridgehead.runtime.metrics import Histogram, Metric, Metrics

from ..request import current_id
from .audit import Audit
from .tracing import Tracer

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = b"application/openmetrics-text"
OPENMETRICS_TYPE = OPENMETRICS + b"; version=1.0.0; charset=utf-8"

_HELP = b"# HELP "
_DESCRIPTORS = Path("/proc/self/fd")

_MOST_CLIENTS = 1000
OTHERS = "(others)"
_STATUS = {status: str(status) for status in range(100, 600)}

Given = tuple[tuple[str, str], ...]
"""Labels that every value of a metric gets."""


class HostMetrics:
    """What the host itself counts, beside what each bridge counts of itself."""

    def __init__(self, callers: Callers) -> None:
        self.metrics = metrics = Metrics()
        self.in_flight = 0
        """Requests whose response takes waiting."""
        self._requests = metrics.counter(
            "bridgehead_http_requests_total", "HTTP requests that were answered.", "route", "status"
        )
        self._seconds = metrics.histogram(
            "bridgehead_http_request_seconds", "How long an HTTP request took, streams apart.", "route"
        )
        self._stream_seconds = metrics.histogram(
            "bridgehead_http_stream_seconds", "How long a response took that was a stream.", "route"
        )
        self._errors = metrics.counter(
            "bridgehead_protocol_errors_total",
            "Requests answered with an error of the protocol: unknown tools, bad arguments and the like.",
            "method",
            "code",
        )
        self._clients = metrics.counter(
            "bridgehead_client_requests_total", "Requests by the name of the caller.", "client"
        )
        self.rejections = metrics.counter(
            "bridgehead_refusals_total",
            "Requests and connections that were rejected before a bridge saw them.",
            "reason",
        )
        self.auth_failures = metrics.counter(
            "bridgehead_auth_failures_total", "Requests without a valid token.", "reason"
        )
        self.blocked = metrics.counter(
            "bridgehead_loop_blocked_total", "Times that the event loop stood still, by what kept it.", "tool"
        )
        show_process(metrics)
        metrics.gauge(
            "bridgehead_http_in_flight",
            "HTTP requests being served that take waiting.",
            lambda: {(): float(self.in_flight)},
        )

        self.connections: Counter[str] = Counter()
        """Connections that are open, by the address at their other end; the server counts them."""
        metrics.gauge(
            "bridgehead_connections",
            "Connections that are open.",
            lambda: {(): float(self.connections.total())},
        )
        metrics.gauge(
            "bridgehead_sessions", "Sessions that are open.", lambda: {(): float(callers.sessions.total)}
        )
        metrics.gauge(
            "bridgehead_streams", "Streams that are open.", lambda: {(): float(callers.streams.total)}
        )

    def show_certificate(self, read_expiry: Callable[[], float]) -> None:
        """Show when the certificate ends, so that somebody is told before it does."""
        self.metrics.gauge(
            "bridgehead_tls_certificate_expiry_timestamp_seconds",
            "When the certificate that is served ends, in seconds since 1970.",
            lambda: {(): read_expiry()},
        )

    def count_error(self, method: str, code: int) -> None:
        """Count one error of the protocol."""
        self._errors.add(method, str(code))

    def count_request(
        self, route: str, status: int, seconds: float, client: str | None, *, is_stream: bool = False
    ) -> None:
        """Count one request that is over."""
        self._requests.add(route, _STATUS[status])
        (self._stream_seconds if is_stream else self._seconds).observe(seconds, route)
        if client is not None:
            known = self._clients.values
            self._clients.add(client if len(known) < _MOST_CLIENTS or (client,) in known else OTHERS)


class CallMetrics:
    """Counts, times and traces the tool calls of one bridge, wherever its tools are offered."""

    def __init__(self, bridge: str, metrics: Metrics, tracer: Tracer | None, audit: Audit) -> None:
        self._bridge = bridge
        self._tracer = tracer
        self._audit = audit
        self._in_flight = 0
        self._calls = metrics.counter(
            "bridgehead_tool_calls_total", "Tool calls that are over, by how they ended.", "tool", "outcome"
        )
        self._seconds = metrics.histogram("bridgehead_tool_seconds", "How long a tool call took.", "tool")
        metrics.gauge(
            "bridgehead_tool_calls_in_flight",
            "Tool calls being served that take waiting.",
            lambda: {(): float(self._in_flight)},
        )

    def hook(self) -> CallHook:
        """Give the hook that tells of every call of the bridge."""
        return observe_calls(self._count, waits=self._begin)

    def _begin(self, call: Invocation) -> None:
        if call.kind == "tool":
            self._in_flight += 1

    def _count(self, call: Invocation, outcome: Outcome, seconds: float) -> None:
        if self._tracer is not None:
            self._tracer.trace_call(self._bridge, call, outcome, seconds, current_id.get())
        if call.kind != "tool":
            return
        if outcome.waited:
            self._in_flight -= 1
        self._calls.add(call.name, outcome.status)
        self._seconds.observe(seconds, call.name)
        self._audit(call, outcome, seconds)


def show_process(metrics: Metrics) -> None:
    """Show what runs, and what it takes of the machine, under the names that Prometheus clients use."""
    build = (__version__, platform.python_version())
    metrics.gauge("bridgehead_build_info", "What runs.", lambda: {build: 1.0}, "version", "python")
    started = time.time()
    metrics.gauge("process_start_time_seconds", "When it was started.", lambda: {(): started})
    metrics.total("process_cpu_seconds_total", "CPU time it took.", lambda: {(): time.process_time()})
    if _DESCRIPTORS.is_dir():
        metrics.gauge(
            "process_open_fds", "Open files.", lambda: {(): float(len(list(_DESCRIPTORS.iterdir())))}
        )
        metrics.gauge("process_resident_memory_bytes", "Memory in use.", lambda: {(): _resident_bytes()})


def _resident_bytes() -> float:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return float(pages) * os.sysconf("SC_PAGE_SIZE")


def to_openmetrics(page: bytes) -> bytes:
    """Make OpenMetrics of a page: a counter's family has no `_total`, and the page says where it ends."""
    lines = []
    for line in page.decode().splitlines():
        if line.startswith(("# HELP ", "# TYPE ")):
            _, kind, name, rest = line.split(" ", 3)
            lines.append(f"# {kind} {name.removesuffix('_total')} {rest}")
        else:
            lines.append(line)
    return ("\n".join([*lines, "# EOF"]) + "\n").encode()


def write_metrics(sources: Iterable[tuple[Given, Metrics]]) -> bytes:
    """Write the metrics of several sources, each with its own labels."""
    families: dict[str, list[tuple[Given, Metric]]] = {}
    for given, metrics in sources:
        for metric in metrics.all:
            families.setdefault(metric.name, []).append((given, metric))
    return "".join(line for name, members in families.items() for line in _family(name, members)).encode()


def _family(name: str, members: list[tuple[Given, Metric]]) -> Iterator[str]:
    first = members[0][1]
    yield f"# HELP {name} {_escaped(first.about, quotes=False)}\n# TYPE {name} {first.kind}\n"
    for given, metric in members:
        if metric.kind == first.kind:
            yield from _values(name, given, metric)


def _values(name: str, given: Given, metric: Metric) -> Iterator[str]:
    if not isinstance(metric, Histogram):
        for labels, value in metric.values.items():
            yield _line(name, given, zip(metric.labels, labels, strict=False), value)
        return
    for labels, counts in metric.counts.items():
        own = tuple(zip(metric.labels, labels, strict=False))
        bounds = (*(f"{bound:g}" for bound in metric.bounds), "+Inf")
        for bound, count in zip(bounds, accumulate(counts), strict=True):
            yield _line(f"{name}_bucket", given, (*own, ("le", bound)), count)
        yield _line(f"{name}_sum", given, own, metric.sums[labels])
        yield _line(f"{name}_count", given, own, sum(counts))


def _line(name: str, given: Given, labels: Iterable[tuple[str, str]], value: float) -> str:
    pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in (*given, *labels))
    return f"{name}{{{pairs}}} {value}\n" if pairs else f"{name} {value}\n"


def _escaped(text: str, *, quotes: bool = True) -> str:
    plain = text.replace("\\", r"\\").replace("\n", r"\n")
    return plain.replace('"', r"\"") if quotes else plain


def join_pages(texts: Iterable[bytes]) -> bytes:
    """Make one text of those of several processes: each family once, with the values of all."""
    families: dict[bytes, bytes] = {}
    for text in texts:
        for family in text.split(_HELP)[1:]:
            name = family.split(b" ", 1)[0]
            head = families.get(name)
            families[name] = _HELP + family if head is None else head + _without_head(family)
    return b"".join(families.values())


def _without_head(family: bytes) -> bytes:
    return b"".join(family.splitlines(keepends=True)[2:])
