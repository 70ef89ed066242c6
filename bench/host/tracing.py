"""What tracing costs: CPU of our host for a call, with a span of each that reaches a collector, and without.

Also a command of its own: `python -m bench.host.tracing [--quick]`.
"""

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median

from bench.before_after import cpu_seconds
from bench.host.calls import STATELESS
from bench.host.servers import Stage

CONNECTIONS = 8
WANTED = 60.0
"""Microseconds of CPU that a span may add to a call."""


@dataclass
class Cost:
    """CPU for a call in microseconds, with and without spans."""

    samples: dict[str, list[float]] = field(default_factory=dict)
    spans: int = 0

    @property
    def added(self) -> float:
        """What a span adds."""
        return median(self.samples["traced"]) - median(self.samples["plain"])

    @property
    def is_reached(self) -> bool:
        """Whether a span is as cheap as wanted."""
        return self.added <= WANTED

    def table(self) -> str:
        """Draw what was measured."""
        plain, traced = (median(self.samples[how]) for how in ("plain", "traced"))
        return (
            "| | CPU a call |\n| --- | ---: |\n"
            f"| without tracing | {plain:.0f} µs |\n| every call a span, exported | {traced:.0f} µs |\n"
            f"| a span (wanted: ≤ {WANTED:g} µs) | {self.added:.0f} µs |"
        )


class _Sink(BaseHTTPRequestHandler):
    """Takes what is exported, and throws it away."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.taken += 1  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _collector() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Sink)
    server.taken = 0  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()


def measured(stage: Stage, rounds: int, seconds: float) -> Cost:
    """Measure both in turns."""
    cost = Cost()
    with _collector() as collector:
        for number in range(rounds + 1):
            for how in ("plain", "traced"):
                if how == "traced":
                    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{collector.server_port}"
                try:
                    value = _measure(stage, seconds)
                finally:
                    os.environ.pop("OTEL_EXPORTER_OTLP_ENDPOINT", None)
                if number:  # the first round is for warming up
                    cost.samples.setdefault(how, []).append(value)
            print(f"tracing, round {number} of {rounds}: {cost.samples}", flush=True)
        cost.spans = collector.taken  # type: ignore[attr-defined]
    return cost


def _measure(stage: Stage, seconds: float) -> float:
    """Return the microseconds of CPU for a call, all threads of the server included.

    The server has a core to itself: what shares one adds to the time that the kernel counts for a call.
    """
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        with stage.ours(sys.executable) as (process, port):
            os.sched_setaffinity(0, {min(cores)})
            stage.load(port, STATELESS, 0.5, CONNECTIONS, "echo").counted()
            before = cpu_seconds(process)
            counted = stage.load(port, STATELESS, seconds, CONNECTIONS, "echo").counted()
            calls: float = sum(path["right"] for path in counted["paths"].values())
            return (cpu_seconds(process) - before) / calls * 1e6
    finally:
        os.sched_setaffinity(0, cores)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        quick = "--quick" in sys.argv
        found = measured(Stage(Path(folder)), rounds=2 if quick else 5, seconds=1.5 if quick else 5.0)
    print(found.table())
    sys.exit(0 if found.is_reached else 1)
