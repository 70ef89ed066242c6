"""Usage: calls, tokens and cost by day, model and client; counted in memory, written a little later.

A process that is killed loses the counts of its last two seconds, but never money of a budget: that is booked
when a send is reserved and when it ends (`reservations.py`). Cheap to import: a server's first answer waits
for it.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Protocol

from msgspec import Struct

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.timing import Clock

from ..completion import Metadata, Tokens

WRITE_SECONDS = 2.0
"""How long counts may wait before they are written."""
MAX_CLIENTS = 256
"""Limit of clients counted by name, per process and day: clients can invent names, and fill the disk."""
OTHER_CLIENTS = "(others)"
_LONGEST_NAME = 200
"""Characters of a model or a client in a key: an index entry of PostgreSQL has at most 2,704 bytes."""
_log = logs.logger("mercury.usage")
_ADD = """
INSERT INTO usage
    (day, model, client, calls, errors, cache_hits, prompt_tokens, completion_tokens, total_tokens, cost_usd,
    unpriced)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    calls = calls + excluded.calls,
    errors = errors + excluded.errors,
    cache_hits = cache_hits + excluded.cache_hits,
    prompt_tokens = prompt_tokens + excluded.prompt_tokens,
    completion_tokens = completion_tokens + excluded.completion_tokens,
    total_tokens = total_tokens + excluded.total_tokens,
    cost_usd = round(cost_usd + excluded.cost_usd, 12),
    unpriced = unpriced + excluded.unpriced
"""
SQLITE_NOW = "((julianday('now') - 2440587.5) * 86400.0)"
"""Seconds since 1970, by SQLite's own clock. `unixepoch('subsec')` needs SQLite 3.42."""
# An open send is uncertain once its time limit is over (see `sqlite_budget.py`).
_HISTORY = f"""
WITH open_sends AS (
    SELECT day, model, client, sends, usd,
        reserved_until <= {SQLITE_NOW} AS is_over
    FROM sends WHERE state = 'open' AND day BETWEEN ?1 AND ?2 AND client = ifnull(?7, client)
), rows AS (
    SELECT *, 0 AS uncertain_sends, 0.0 AS uncertain_usd, 0.0 AS reserved_usd
    FROM usage WHERE day BETWEEN ?1 AND ?2 AND client = ifnull(?7, client)
    UNION ALL
    SELECT day, model, client, 0, 0, 0, 0, 0, 0, 0.0, 0,
        iif(is_over, sends, 0), iif(is_over, usd, 0), iif(is_over, 0, usd)
    FROM open_sends
)
SELECT iif(?3, day, '') AS at_day, iif(?4, model, '') AS of_model, iif(?5, client, '') AS by_client,
    sum(calls), sum(errors), sum(cache_hits), sum(prompt_tokens), sum(completion_tokens), sum(total_tokens),
    round(total(cost_usd), 12), sum(unpriced),
    sum(uncertain_sends), round(total(uncertain_usd), 12), round(total(reserved_usd), 12)
FROM rows
GROUP BY at_day, of_model, by_client ORDER BY at_day, of_model, by_client LIMIT ?6
"""  # noqa: S608 - our own text


class UsageCounts(Struct):
    """Usage of one model, or of one row of a report."""

    calls: int = 0
    errors: int = 0
    cache_hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cost_usd: float = 0.0
    """Settled cost."""
    unpriced: int = 0
    """Answers whose cost is unknown and not included in `cost_usd`."""
    uncertain_sends: int = 0
    uncertain_usd: float = 0.0
    """The worst case of sends whose end is unknown."""
    reserved_usd: float = 0.0
    """The worst case of sends that are under way."""

    def add(self, other: UsageCounts) -> None:
        """Add other counts to these."""
        self.calls += other.calls
        self.errors += other.errors
        self.cache_hits += other.cache_hits
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens
        self.total_tokens += other.total_tokens
        self.unpriced += other.unpriced
        self.uncertain_sends += other.uncertain_sends
        # Rounded to a trillionth of a dollar: float sums would show noise behind that.
        self.cost_usd = round(self.cost_usd + other.cost_usd, 12)
        self.uncertain_usd = round(self.uncertain_usd + other.uncertain_usd, 12)
        self.reserved_usd = round(self.reserved_usd + other.reserved_usd, 12)


COUNTED = UsageCounts.__struct_fields__[:8]
"""The fields that are counted in memory and written; the others are computed from the budget's sends."""


def utc_day(now: float) -> str:
    """Return the UTC day of a time. Cached, because every call asks for it."""
    number = int(now // _DAY_SECONDS)
    if number != _utc_day[0]:
        _utc_day[:] = number, datetime.fromtimestamp(now, UTC).date().isoformat()
    return str(_utc_day[1])


class SteadyClock:
    """A clock whose time of day does not go back, so that no budget is opened again.

    If it goes back by more than `LONGEST_BACK_SECONDS`, it was wrong before, and is believed now.
    """

    def __init__(self, clock: Clock) -> None:
        self.monotonic, self._now, self._latest = clock.monotonic, clock.now, 0.0

    def now(self) -> float:
        """Return the seconds since 1970."""
        now = self._now()
        if now > self._latest or self._latest - now > LONGEST_BACK_SECONDS:
            self._latest = now
        return self._latest


_DAY_SECONDS = 24 * 60 * 60
LONGEST_BACK_SECONDS = 2.0 * _DAY_SECONDS
_utc_day: list[Any] = [-1, ""]

DIMENSIONS = ("day", "model", "client")
"""The fields that usage can be grouped by."""
MAX_ROWS = 10_000
MAX_UNPRICED = 10_000


class Span(Struct, frozen=True):
    """A range of days, both ends included."""

    first: str
    last: str

    @classmethod
    def ending(cls, today: str, days: int) -> Span:
        """Return the last `days` days up to today."""
        return cls((date.fromisoformat(today) - timedelta(days=days - 1)).isoformat(), today)


class UsageRow(Struct, frozen=True, omit_defaults=True):
    """Usage of one group; fields that were not grouped by are empty."""

    counts: UsageCounts
    day: str = ""
    model: str = ""
    client: str = ""


Key = tuple[str, str, str]
"""A day, a model and a client."""


class UsageBackend(Protocol):
    """The store of counts: SQLite for one machine's processes, or PostgreSQL for all replicas."""

    def add_source(self, source: Usage, /) -> None:
        """Write the counts of `source` from now on."""

    def write_soon(self) -> None:
        """Write the counts, a little later."""

    async def history(self, span: Span, by: Collection[str], client: str | None = None) -> list[UsageRow]:
        """Return the counts of a span, grouped by some of `DIMENSIONS`; raises `BridgeError`.

        With `client`, only that client's.
        """

    async def close(self) -> None:
        """Write what is pending, and close."""


class Usage:
    """The counts of this process since its start, and its contribution to the shared ones."""

    def __init__(
        self,
        store: UsageBackend,
        clock: Clock,
        price: Callable[[Tokens, str], float | None] = lambda _used, _model: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._price = price
        """Returns the cost of the tokens of a model; None while the prices are unknown."""
        self._store.add_source(self)
        self._models: dict[str, UsageCounts] = {}
        self._unwritten: dict[Key, UsageCounts] = {}
        self._recent: dict[Key, UsageCounts] = {}
        """Answers of the API not counted in either sum yet: `_gather` adds them to both."""
        self._hits: dict[tuple[str, str], int] = {}
        """Cache hits by model and client not counted in either sum yet."""
        self._unpriced: deque[tuple[Key, str, Tokens]] = deque(maxlen=MAX_UNPRICED)
        """Answers that arrived before the price list; priced when it arrives."""
        self._clients: set[str] = set()
        self._clients_day = ""

    @property
    def today(self) -> str:
        """The UTC day."""
        return utc_day(self._clock.now())

    def counted_client(self, client: str) -> str:
        """Return the name under which a client is counted."""
        day = utc_day(self._clock.now())
        if self._clients_day != day:
            self._clients_day, self._clients = day, set()
        if client in self._clients:
            return client
        name = _storable(client)
        if name not in self._clients and len(self._clients) >= MAX_CLIENTS:
            return OTHER_CLIENTS
        self._clients.add(name)
        return name

    @property
    def models(self) -> dict[str, UsageCounts]:
        """Counts by model, since the start."""
        self._gather()
        return self._models

    def count(self, model: str, client: str, counts: UsageCounts) -> None:
        """Add the usage of a call."""
        self._add((self.today, model, self.counted_client(client)), counts)

    def count_answer(self, model: str, client: str, metadata: Metadata, *, is_booked: bool) -> None:
        """Add a call that the API answered; without a cost, it is priced once the prices are known.

        A booked cost is written with its reservation; here it only counts in `models`.
        """
        used, cost = metadata.usage or None, metadata.cost_usd
        # First, because it also advances `_clients_day` to today.
        counted_client = self.counted_client(client)
        key = (self._clients_day, model, counted_client)
        counts = self._recent.get(key)
        if counts is None:
            counts = self._recent[key] = UsageCounts()
        counts.calls += 1
        if used is not None:
            counts.prompt_tokens += used.prompt_tokens
            counts.completion_tokens += used.completion_tokens
            counts.total_tokens += used.total_tokens
        # Not in `counts`: the store would add the cost a second time.
        if is_booked:
            self._models.setdefault(model, UsageCounts()).add(UsageCounts(cost_usd=cost or 0.0))
        elif cost is not None:
            counts.cost_usd += cost
        else:
            counts.unpriced += 1
            if used is not None:
                self._unpriced.append((key, metadata.model, used))
        self._store.write_soon()

    def count_uncertain(self, model: str, usd: float | None) -> None:
        """Add a send whose end is unknown; the budget's books store it."""
        counts = UsageCounts(uncertain_sends=1, uncertain_usd=usd or 0.0)
        self._models.setdefault(model, UsageCounts()).add(counts)

    def _gather(self) -> None:
        """Add recent answers and hits to both sums, and the cost of answers whose price has become known."""
        recent, self._recent = self._recent, {}
        for key, counts in recent.items():
            self._add(key, counts)
        hits, self._hits = self._hits, {}
        for (model, client), count in hits.items():
            self.count(model, client, UsageCounts(calls=count, cache_hits=count))
        for _ in range(len(self._unpriced)):
            key, answered, used = self._unpriced.popleft()
            cost = self._price(used, answered)
            if cost is None:
                self._unpriced.append((key, answered, used))
            else:
                self._add(key, UsageCounts(cost_usd=cost, unpriced=-1))

    def _add(self, key: Key, counts: UsageCounts) -> None:
        day, model, client = key
        self._models.setdefault(model, UsageCounts()).add(counts)
        self._unwritten.setdefault((day, _storable(model), client), UsageCounts()).add(counts)
        self._store.write_soon()

    def count_hit(self, model: str, client: str) -> None:
        """Add a cache hit. On the path of the fastest answers, so it allocates no counts."""
        key = (model, client)
        self._hits[key] = self._hits.get(key, 0) + 1
        self._store.write_soon()

    async def read_today(self) -> dict[str, UsageCounts]:
        """Return today's counts by model, of all processes."""
        day = self.today
        try:
            rows = await self.history(Span(day, day), by=("model",))
        except BridgeError as error:
            _log.warn("usage cannot be read", reason=str(error))
            return self.models
        return {row.model: row.counts for row in rows}

    async def history(self, span: Span, by: Collection[str], client: str | None = None) -> list[UsageRow]:
        """Return the counts of a span, of all processes; with `client`, only its own."""
        return await self._store.history(span, by, None if client is None else _storable(client))

    def take_counts(self) -> dict[Key, UsageCounts]:
        """Return the unwritten counts and forget them; `restore_counts` undoes it."""
        self._gather()
        taken, self._unwritten = self._unwritten, {}
        return taken

    def restore_counts(self, counts: Mapping[Key, UsageCounts]) -> None:
        """Add back counts that could not be written."""
        for key, amounts in counts.items():
            self._unwritten.setdefault(key, UsageCounts()).add(amounts)


def _storable(name: str) -> str:
    """Return a name that every store accepts in a key; clients may have invented it."""
    return name.replace("\0", "\N{REPLACEMENT CHARACTER}")[:_LONGEST_NAME]


def add_usage(connection: sqlite3.Connection, day: str, model: str, client: str, counts: UsageCounts) -> None:
    """Add counts to a row."""
    connection.execute(_ADD, (day, model, client, *(getattr(counts, field) for field in COUNTED)))


def read_history(
    connection: sqlite3.Connection, span: Span, by: Collection[str], client: str | None = None
) -> list[UsageRow]:
    """Read the counts of a span, grouped by some of `DIMENSIONS`; with `client`, only its own."""
    chosen = [name in by for name in DIMENSIONS]
    rows = connection.execute(_HISTORY, (span.first, span.last, *chosen, MAX_ROWS, client)).fetchall()
    return [UsageRow(UsageCounts(*counts), day, model, client) for day, model, client, *counts in rows]
