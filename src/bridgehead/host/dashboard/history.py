"""History: what happened lately in this process, for whoever looks: calls by interval, failures, notices.

Everything is bounded. Calls are not watched one by one: every few seconds the difference is taken to what was
counted before, so a call costs nothing here. Only a call that failed is noted when it ends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from bridgehead.mcp import InvalidArguments, Invocation, Outcome, ProtocolError, ToolError
from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.events import Event, Listener, matches
from bridgehead.runtime.metrics import SECONDS, Histogram, Metrics
from bridgehead.runtime.timing import Clock

from ..request import current_request

INTERVAL = 5.0
"""Seconds between two looks at the counters. Slots begin at whole multiples, the same in every process."""
SLOTS = 180
"""Intervals that are kept: a quarter of an hour."""
MAX_FAILURES = 100
MAX_NOTICES = 50
_MAX_TEXT = 600
_MAX_PARTS = 8
_TOOL_SECONDS = "bridgehead_tool_seconds"
_TOLD = ("far_side.*", "breaker.*", "budget.*")

log = logs.logger("host.dashboard")


class Counts(Struct, array_like=True):
    """Calls of one bridge or tool: how many, how many failed, and how many took how long."""

    calls: int = 0
    errors: int = 0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))

    def add(self, other: Counts) -> None:
        """Add others to these."""
        self.calls += other.calls
        self.errors += other.errors
        self.buckets = [own + more for own, more in zip(self.buckets, other.buckets, strict=True)]

    def since(self, earlier: Counts) -> Counts:
        """Return what has come since."""
        return Counts(
            self.calls - earlier.calls,
            self.errors - earlier.errors,
            [now - before for now, before in zip(self.buckets, earlier.buckets, strict=True)],
        )

    def quantile(self, share: float) -> float | None:
        """Return how many seconds that share of the calls took at most, as exactly as the buckets tell."""
        total = sum(self.buckets)
        if not total:
            return None
        wanted, below = share * total, 0
        for place, count in enumerate(self.buckets):
            if count and below + count >= wanted:
                low = SECONDS[place - 1] if place else 0.0
                high = SECONDS[place] if place < len(SECONDS) else SECONDS[-1]
                return low + (high - low) * (wanted - below) / count
            below += count
        return SECONDS[-1]


class Failure(Struct):
    """A call that failed, in words for a person."""

    at: float
    bridge: str
    tool: str
    client: str
    problem: str
    next_step: str = ""
    request: str = ""
    """The id under which the log has it."""


class Notice(Struct):
    """Something that happened to a far side or to a budget."""

    at: float
    kind: str
    bridge: str
    says: str


Slots = dict[int, dict[str, Counts]]
"""By the number of an interval, then by bridge; intervals without a call are not there."""


class History:
    """What happened lately."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._slots: deque[tuple[int, dict[str, Counts]]] = deque(maxlen=SLOTS)
        self._before: dict[str, Counts] = {}
        self._failures: deque[Failure] = deque(maxlen=MAX_FAILURES)
        self.notices = NoticeBoard()

    @property
    def slots(self) -> Slots:
        """The calls of the intervals that are kept."""
        oldest = current_slot(self._clock.now()) - SLOTS
        return {slot: counts for slot, counts in self._slots if slot > oldest}

    @property
    def failures(self) -> list[Failure]:
        """The last calls that failed, the newest first."""
        return list(reversed(self._failures))

    async def run(self, bridges: Mapping[str, Metrics]) -> None:
        """Look at the counters as long as the host lives."""
        self.look(bridges)
        while True:
            now = self._clock.now()
            await asyncio.sleep((current_slot(now) + 1) * INTERVAL - now)
            self.look(bridges)

    def look(self, bridges: Mapping[str, Metrics]) -> None:
        """Note what was called since the last look, in the interval that has just ended."""
        slot = current_slot(self._clock.now() - INTERVAL / 2)
        came: dict[str, Counts] = {}
        for name, metrics in bridges.items():
            now = count_all(metrics)
            since = now.since(self._before.get(name, Counts()))
            self._before[name] = now
            if since.calls > 0:
                came[name] = since
        if came:
            self._slots.append((slot, came))

    def note_failure(self, bridge: str, call: Invocation, outcome: Outcome) -> None:
        """Note a call that failed."""
        problem, next_step = describe_failure(outcome)
        request = current_request.get()
        self._failures.append(
            Failure(
                self._clock.now(),
                bridge,
                call.name,
                call.context.principal or "",
                problem,
                next_step,
                "" if request is None else request.id,
            )
        )


class NoticeBoard(Listener):
    """Keeps the last events that an operator wants to know of, and hears of no call."""

    def __init__(self) -> None:
        super().__init__(_TOLD, MAX_NOTICES)
        self._last: deque[Event] = deque(maxlen=MAX_NOTICES)

    def put(self, event: Event) -> None:
        """Keep an event, if it is one of those."""
        if matches(_TOLD, event.type):
            self._last.append(event)

    @property
    def last(self) -> list[Notice]:
        """What is kept, the newest first."""
        return [_read_notice(event) for event in reversed(self._last)]


def _read_notice(event: Event) -> Notice:
    data = logs.clean(dict(event.data))
    rest = ", ".join(f"{name} {value}" for name, value in data.items() if name not in {"bridge", "says"})
    return Notice(event.time, event.type, str(data.get("bridge", "")), str(data.get("says") or rest))


def current_slot(now: float) -> int:
    """Return the number of the interval that a moment is in."""
    return int(now // INTERVAL)


def count_all(metrics: Metrics) -> Counts:
    """Count all calls of a bridge so far."""
    total = Counts()
    for counts in count_tools(metrics).values():
        total.add(counts)
    return total


def count_tools(metrics: Metrics) -> dict[str, Counts]:
    """Count the calls of each tool of a bridge so far."""
    found: dict[str, Counts] = {}
    for metric in metrics.all:
        if metric.name == _TOOL_SECONDS and isinstance(metric, Histogram):
            for (tool, outcome), buckets in metric.counts.items():
                calls = sum(buckets)
                ended = Counts(calls, calls if outcome == "error" else 0, list(buckets))
                found.setdefault(tool, Counts()).add(ended)
    return found


def add_slots(several: Iterable[Slots]) -> Slots:
    """Add up what several processes have counted."""
    total: Slots = {}
    for slots in several:
        for slot, bridges in slots.items():
            for name, counts in bridges.items():
                total.setdefault(slot, {}).setdefault(name, Counts()).add(counts)
    return total


def describe_failure(outcome: Outcome) -> tuple[str, str]:
    """Say what went wrong, and what to do next. What no bridge has words for stays in the log."""
    error = outcome.error
    if isinstance(error, BridgeError):
        problem, next_step = error.message, error.next_step
    elif isinstance(error, ToolError | ProtocolError | InvalidArguments):
        problem, next_step = str(error), ""
    elif error is not None:
        problem, next_step = f"An unexpected failure ({type(error).__name__}).", "The log has the details."
    else:
        problem, next_step = _first_text(outcome.value), ""
    return _shorten(problem), _shorten(next_step)


def _first_text(value: object) -> str:
    contents = getattr(value, "content", None)
    parts = contents[:_MAX_PARTS] if isinstance(contents, list) else [value]
    texts = (str(getattr(part, "text", "")) for part in parts)
    return next((text for text in texts if text), "The tool says no more.")


def _shorten(text: str) -> str:
    cleaned = logs.scrubbed(text[: 2 * _MAX_TEXT])
    return cleaned if len(cleaned) <= _MAX_TEXT else cleaned[: _MAX_TEXT - 1] + "…"
