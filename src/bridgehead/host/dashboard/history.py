"""History: recent calls by interval, failures and notices of this process, for the dashboard.

Everything is bounded, and nothing survives the process. Calls are sampled: every `INTERVAL` the metrics are
compared with the last sample, so a call costs nothing here. Only a failed call is recorded when it ends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping

from msgspec import Struct, field

from bridgehead.mcp import InvalidArguments, Invocation, Outcome, ProtocolError, ToolError
from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.events import Event, Listener, matches
from bridgehead.runtime.metrics import SECONDS, Histogram, Metrics
from bridgehead.runtime.timing import Clock

from ..request import current_request

INTERVAL = 5.0
"""Seconds between two samples."""
MAX_FAILURES = 100
MAX_NOTICES = 50
_MAX_TEXT = 600
_MAX_PARTS = 8
_TOOL_SECONDS = "bridgehead_tool_seconds"
_NOTICE_TYPES = ("far_side.*", "breaker.*", "budget.*")

log = logs.logger("host.dashboard")


class Range(Struct, frozen=True):
    """A stretch of time that charts can show, and its resolution."""

    name: str
    """Its name in the address of a page."""
    title: str
    interval: float
    """Length of a slot in seconds. Slots begin at multiples of it, so they are the same in every process."""
    slots: int
    """How many complete slots are kept, besides the current one."""

    def slot(self, at: float) -> int:
        """Return the number of the slot of a time (seconds since 1970)."""
        return int(at // self.interval)


QUARTER = Range("quarter", "15 min", INTERVAL, 180)
HOUR = Range("hour", "1 h", 20.0, 180)
DAY = Range("day", "24 h", 300.0, 288)
# A ring of slots for each: about 650 slots of a few hundred bytes for each bridge that is called.
RANGES = {range_.name: range_ for range_ in (QUARTER, HOUR, DAY)}


class Counts(Struct, array_like=True):
    """Calls, failed calls and a latency histogram, of one bridge or tool."""

    calls: int = 0
    errors: int = 0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    """Calls by duration: bucket i ends at SECONDS[i], the last has no end."""

    def add(self, other: Counts) -> None:
        """Add other counts to these."""
        self.calls += other.calls
        self.errors += other.errors
        self.buckets = [own + more for own, more in zip(self.buckets, other.buckets, strict=True)]

    def since(self, earlier: Counts) -> Counts:
        """Return the difference to earlier counts."""
        return Counts(
            self.calls - earlier.calls,
            self.errors - earlier.errors,
            [now - before for now, before in zip(self.buckets, earlier.buckets, strict=True)],
        )

    def quantile(self, share: float) -> float | None:
        """Return the seconds that this share of the calls did not exceed; None without calls."""
        total = sum(self.buckets)
        if not total:
            return None
        # Interpolated within the bucket, as Prometheus' histogram_quantile does.
        rank, below = share * total, 0
        for index, count in enumerate(self.buckets):
            if count and below + count >= rank:
                low = SECONDS[index - 1] if index else 0.0
                high = SECONDS[index] if index < len(SECONDS) else SECONDS[-1]
                return low + (high - low) * (rank - below) / count
            below += count
        return SECONDS[-1]


class Failure(Struct):
    """A failed call, worded for a person."""

    at: float
    bridge: str
    tool: str
    client: str
    problem: str
    next_step: str = ""
    request: str = ""
    """The request id, by which the log has more."""


class Notice(Struct):
    """An event about a far side, a breaker or a budget."""

    at: float
    kind: str
    bridge: str
    text: str


Slots = dict[int, dict[str, Counts]]
"""Counts by slot number, then by bridge; slots without a call are absent."""


class History:
    """The recent past of one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rings: dict[str, deque[tuple[int, dict[str, Counts]]]] = {
            name: deque(maxlen=range_.slots + 1) for name, range_ in RANGES.items()
        }
        self._last: dict[str, Counts] = {}
        """Totals of each bridge at the last sample."""
        self._failures: deque[Failure] = deque(maxlen=MAX_FAILURES)
        self.notices = NoticeBoard()

    def slots(self, name: str) -> Slots:
        """Return the calls of a range, by its name."""
        # Quiet slots take no place in the deque, so it may hold slots that are older than the range.
        shown = RANGES[name]
        oldest = shown.slot(self._clock.now()) - shown.slots
        return {slot: counts for slot, counts in self._rings[name] if slot >= oldest}

    @property
    def failures(self) -> list[Failure]:
        """The last failed calls, newest first."""
        return list(reversed(self._failures))

    async def run(self, bridges: Mapping[str, Metrics]) -> None:
        """Sample the metrics at the end of every slot, until cancelled."""
        self.sample(bridges)
        while True:
            now = self._clock.now()
            await asyncio.sleep((QUARTER.slot(now) + 1) * INTERVAL - now)
            self.sample(bridges)

    def sample(self, bridges: Mapping[str, Metrics]) -> None:
        """Add the calls since the last sample, in each range, to the slot in which they ended."""
        counts: dict[str, Counts] = {}
        for name, metrics in bridges.items():
            now = Counts()
            for of_tool in count_tools(metrics).values():
                now.add(of_tool)
            since = now.since(self._last.get(name, Counts()))
            self._last[name] = now
            if since.calls > 0:
                counts[name] = since
        if not counts:
            return
        # Half a sample back: the timer may fire a little before or after the end of the slot.
        at = self._clock.now() - INTERVAL / 2
        for name, ring in self._rings.items():
            slot = RANGES[name].slot(at)
            if not ring or ring[-1][0] != slot:
                ring.append((slot, {}))
            for bridge, since in counts.items():
                ring[-1][1].setdefault(bridge, Counts()).add(since)

    def note_failure(self, bridge: str, call: Invocation, outcome: Outcome) -> None:
        """Record a failed call."""
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
    """Keeps the last events about far sides, breakers and budgets; none about calls."""

    def __init__(self) -> None:
        super().__init__(_NOTICE_TYPES, MAX_NOTICES)
        self._last: deque[Event] = deque(maxlen=MAX_NOTICES)

    def put(self, event: Event) -> None:
        """Keep an event if it is one of these."""
        # Not the listener's queue: it has no reader, so it would count its overflow as dropped.
        if matches(_NOTICE_TYPES, event.type):
            self._last.append(event)

    @property
    def last(self) -> list[Notice]:
        """The kept events, newest first."""
        notices = []
        for event in reversed(self._last):
            data = logs.clean(dict(event.data))
            rest = ", ".join(
                f"{name} {value}" for name, value in data.items() if name not in {"bridge", "says"}
            )
            text = str(data.get("says") or rest)
            notices.append(Notice(event.time, event.type, str(data.get("bridge", "")), text))
        return notices


def count_tools(metrics: Metrics) -> dict[str, Counts]:
    """Return the calls of each tool of a bridge since the start."""
    by_tool: dict[str, Counts] = {}
    for metric in metrics.all:
        if metric.name == _TOOL_SECONDS and isinstance(metric, Histogram):
            for (tool, outcome), buckets in metric.counts.items():
                calls = sum(buckets)
                ended = Counts(calls, calls if outcome == "error" else 0, list(buckets))
                by_tool.setdefault(tool, Counts()).add(ended)
    return by_tool


def describe_failure(outcome: Outcome) -> tuple[str, str]:
    """Return what went wrong and what to do next."""
    error = outcome.error
    if isinstance(error, BridgeError):
        problem, next_step = error.message, error.next_step
    elif isinstance(error, ToolError | ProtocolError | InvalidArguments):
        problem, next_step = str(error), ""
    elif error is not None:
        # Only the type: the text of an unexpected error may hold anything, so it stays in the log.
        problem, next_step = f"An unexpected failure ({type(error).__name__}).", "The log has the details."
    else:  # the tool returned a result with `isError`
        contents = getattr(outcome.value, "content", None)
        parts = contents[:_MAX_PARTS] if isinstance(contents, list) else [outcome.value]
        texts = (str(getattr(part, "text", "")) for part in parts)
        problem, next_step = next((text for text in texts if text), "The tool gave no details."), ""
    return _shorten(problem), _shorten(next_step)


def _shorten(text: str) -> str:
    # Cut before scrubbing, to bound the work, and at twice the length: a secret that this cut splits is not
    # recognized, but it is beyond the part that is shown.
    cleaned = logs.scrubbed(text[: 2 * _MAX_TEXT])
    return cleaned if len(cleaned) <= _MAX_TEXT else cleaned[: _MAX_TEXT - 1] + "…"
