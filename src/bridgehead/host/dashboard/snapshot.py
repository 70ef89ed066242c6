"""Snapshot: the state of one process as plain data.

Collected only while a dashboard page is open. The numbers come from the metrics, which are counted anyway.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping

from msgspec import Struct

from bridgehead import __version__
from bridgehead.runtime.metrics import Histogram, Metrics
from bridgehead.runtime.timing import Clock

from ..auth.tokens import Tokens
from ..registry import Registry
from ..telemetry.metrics import HostMetrics
from ..views import Views
from .history import QUARTER, RANGES, Counts, Failure, History, Notice, Slots, count_tools

MAX_SESSIONS = 1000
"""Limit of the sessions of one process in a snapshot; the last used come first."""
_MAX_NAME = 80


class BridgeState(Struct):
    """One bridge: whether it serves, and the calls of its tools."""

    name: str
    title: str
    serves: bool
    is_far_side_up: bool
    detail: str
    """The state of the far side, or why the bridge does not serve."""
    in_flight: int
    tools: dict[str, Counts]


class SessionState(Struct):
    """One session of a client."""

    handle: str
    """Replaces the session id, which is a secret of the client."""
    caller: str
    client: str
    """Name and version from the client's `clientInfo`."""
    revision: str
    bridge: str
    idle_seconds: float
    is_busy: bool


class ProcessState(Struct):
    """One process: its start (seconds since 1970), CPU time and memory."""

    started: float
    cpu_seconds: float
    memory_bytes: float


class Snapshot(Struct):
    """The state of one process."""

    taken: float
    version: str
    process: ProcessState
    bridges: list[BridgeState]
    slots: dict[str, Slots]
    """Calls by range: the last quarter of an hour, and the range that the page shows."""
    failures: list[Failure]
    notices: list[Notice]
    sessions: list[SessionState]
    open: dict[str, int]
    """How many sessions, streams, connections and requests are open."""
    clients: dict[str, dict[str, int]]
    """Per caller: its open resources, requests (`made`) and time in threads (`thread_ms`)."""
    limits: dict[str, int]
    """Limits of one caller, by the same names."""
    tasks: dict[str, int]
    rejections: dict[str, int]
    token_uses: dict[str, float]
    """The last use of each token by its id, in seconds since 1970."""

    @property
    def calls(self) -> Counts:
        """All calls since the start."""
        total = Counts()
        for bridge in self.bridges:
            for counts in bridge.tools.values():
                total.add(counts)
        return total


class SnapshotCollector:
    """Collects the snapshots of one process."""

    def __init__(
        self,
        registry: Registry,
        metrics: HostMetrics,
        views: Views,
        history: History,
        clock: Clock,
        *,
        tokens: Tokens | None = None,
    ) -> None:
        self._registry = registry
        self._metrics = metrics
        self._views = views
        self._history = history
        self._clock = clock
        self._tokens = tokens

    def collect(self, shown: str = QUARTER.name) -> Snapshot:
        """Return the state of this process now; `shown` names the range of the page's charts."""
        host = self._metrics.metrics
        clients: dict[str, dict[str, int]] = {}
        for (client,), count in read(host, "bridgehead_client_requests_total").items():
            clients.setdefault(client, {})["made"] = int(count)
        for (client, resource), count in read(host, "bridgehead_client_open").items():
            clients.setdefault(client, {})[resource] = int(count)
        for (client,), seconds in read(host, "bridgehead_client_thread_seconds_total").items():
            clients.setdefault(client, {})["thread_ms"] = int(seconds * 1000)
        process = ProcessState(
            total(host, "process_start_time_seconds"),
            total(host, "process_cpu_seconds_total"),
            total(host, "process_resident_memory_bytes"),
        )
        return Snapshot(
            taken=self._clock.now(),
            version=__version__,
            process=process,
            bridges=self._bridges(),
            slots={name: self._history.slots(name) for name in {QUARTER.name, shown} & RANGES.keys()},
            failures=self._history.failures,
            notices=self._history.notices.last,
            sessions=self.sessions(),
            open={
                resource: int(total(host, name))
                for resource, name in (
                    ("sessions", "bridgehead_sessions"),
                    ("streams", "bridgehead_streams"),
                    ("connections", "bridgehead_connections"),
                    ("requests", "bridgehead_http_in_flight"),
                )
            },
            clients=clients,
            limits={
                resource: int(limit)
                for (scope, resource), limit in self._metrics.limits.items()
                if scope == "client"
            },
            tasks={status: int(count) for (status,), count in read(host, "bridgehead_tasks").items()},
            rejections={why: int(count) for (why,), count in read(host, "bridgehead_refusals_total").items()},
            token_uses={} if self._tokens is None else self._tokens.last_uses,
        )

    def _bridges(self) -> list[BridgeState]:
        bridges = []
        for status in self._registry.statuses.values():
            far_side = self._registry.far_side(status)
            bridges.append(
                BridgeState(
                    status.name,
                    status.manifest.title,
                    not status.problem,
                    far_side.is_up,
                    far_side.detail,
                    int(total(status.metrics, "bridgehead_tool_calls_in_flight")),
                    count_tools(status.metrics),
                )
            )
        return bridges

    def sessions(self) -> list[SessionState]:
        """Return the open sessions, the last used first."""
        now = time.monotonic()
        # The monotonic clock of the sessions themselves, and not `self._clock`, which tests set.
        states = []
        for bridge, session in self._views.sessions():
            client = session.connection.client
            info: Mapping[str, object] = {} if client is None else client.info
            words = (str(info.get(key) or "")[:_MAX_NAME] for key in ("name", "version"))
            states.append(
                SessionState(
                    make_handle(session.id),
                    session.caller,
                    " ".join(word for word in words if word),
                    "" if client is None else client.revision.name,
                    bridge or "",
                    0.0 if session.in_use else now - session.idle_since,
                    bool(session.in_use),
                )
            )
        return sorted(states, key=lambda state: (not state.is_busy, state.idle_seconds))[:MAX_SESSIONS]

    def end_session(self, handle: str) -> bool:
        """End a session of this process; return False if it has none with that handle."""
        for _, session in self._views.sessions():
            if make_handle(session.id) == handle:
                return self._views.end_session(session)
        return False


def make_handle(session_id: str) -> str:
    """Name a session without revealing its id."""
    # A session's id is enough to act in it, so no page shows it.
    return hashlib.sha256(session_id.encode()).hexdigest()[:16]


def read(metrics: Metrics, name: str) -> dict[tuple[str, ...], float]:
    """Return the values of a metric by its name."""
    for metric in metrics.all:
        if metric.name == name and not isinstance(metric, Histogram):
            return metric.values
    return {}


def total(metrics: Metrics, name: str) -> float:
    """Return the sum of a metric's values."""
    return sum(read(metrics, name).values())
