"""Metrics: what the host counts of requests and of calls, and the page that shows everything that is counted.

The page is in the text format that Prometheus reads, written by hand: the format is a name, labels and a
number a line, and the counters are our own. A metric of a bridge gets the label `bridge`; those of the same
name become one family.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from bridgehead.mcp import CallHook, Invocation, Outcome, observe_calls
from bridgehead.mcp.http.callers import Callers
from bridgehead.runtime.metrics import Histogram, Metric, Metrics

from .tracing import Tracer

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

_HELP = b"# HELP "

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
            "bridgehead_http_request_seconds", "How long an HTTP request took, streams included.", "route"
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

    def count_request(self, route: str, status: int, seconds: float, client: str | None) -> None:
        """Count one request that is over."""
        self._requests.add(route, _STATUS[status])
        self._seconds.observe(seconds, route)
        if client is not None:
            known = self._clients.values
            self._clients.add(client if len(known) < _MOST_CLIENTS or (client,) in known else OTHERS)


class CallMetrics:
    """Counts, times and traces the tool calls of one bridge, wherever its tools are offered."""

    def __init__(self, bridge: str, metrics: Metrics, tracer: Tracer | None) -> None:
        self._bridge = bridge
        self._tracer = tracer
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
        if call.kind != "tool":
            return
        if outcome.waited:
            self._in_flight -= 1
        self._calls.add(call.name, outcome.status)
        self._seconds.observe(seconds, call.name)
        if self._tracer is not None:
            self._tracer.trace_call(self._bridge, call, outcome.status, seconds)


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
