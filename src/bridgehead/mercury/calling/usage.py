"""Usage: what calls used, by day, model and client. Counted in memory, written to the store a little later.

A process that is killed loses the counts of its last two seconds, and never a cent of a budget: that money is
committed before a request goes out (`budget.py`). Cheap to import: a server's first answer waits for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError

if TYPE_CHECKING:
    import sqlite3

    from ..completion import Metadata
    from .usage_store import UsageStore, Work

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
_HISTORY = """
SELECT iif(?3, day, '') AS at_day, iif(?4, model, '') AS of_model, iif(?5, client, '') AS by_client,
    sum(calls), sum(errors), sum(cache_hits), sum(prompt_tokens), sum(completion_tokens), sum(total_tokens),
    round(total(cost_usd), 12), sum(unpriced)
FROM usage WHERE day BETWEEN ?1 AND ?2
GROUP BY at_day, of_model, by_client ORDER BY at_day, of_model, by_client LIMIT ?6
"""


class UsageCounts(Struct):
    """What was used of one model."""

    calls: int = 0
    errors: int = 0
    cache_hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    """Answers whose cost is not known, and not in `cost_usd`."""

    def add(self, other: UsageCounts) -> None:
        """Add another one to this one."""
        self.calls += other.calls
        self.errors += other.errors
        self.cache_hits += other.cache_hits
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens
        self.total_tokens += other.total_tokens
        self.unpriced += other.unpriced
        # Sums of such small numbers have noise at the end.
        self.cost_usd = round(self.cost_usd + other.cost_usd, 12)


DIMENSIONS = ("day", "model", "client")
"""What usage can be told apart by."""
MAX_ROWS = 10_000
MAX_UNPRICED = 10_000


class Span(Struct, frozen=True):
    """Some days, both ends included."""

    first: str
    last: str

    @classmethod
    def ending(cls, today: str, days: int) -> Span:
        """Return so many days up to today."""
        from datetime import date, timedelta

        return cls((date.fromisoformat(today) - timedelta(days=days - 1)).isoformat(), today)


class UsageRow(Struct, frozen=True, omit_defaults=True):
    """What was used on a day, of a model, by a client; what was not asked for is empty."""

    counts: UsageCounts
    day: str = ""
    model: str = ""
    client: str = ""


Key = tuple[str, str, str]
"""A day, a model and a client."""


Price = Callable[["Metadata", str], float | None]
"""Tells what an answer cost; None while the prices are not known."""


class SharedUsage(Protocol):
    """Where the counts of all replicas are, instead of those of one user's processes."""

    @property
    def today(self) -> str:
        """The UTC day."""
        ...

    def add_source(self, source: Usage, /) -> None:
        """Write what is counted there from now on."""
        ...

    def write_soon(self) -> None:
        """Write what was counted, a little later."""
        ...

    async def history(self, span: Span, by: Collection[str]) -> list[UsageRow]:
        """Return the counts of some days; raises `BridgeError`."""
        ...


class Usage:
    """The counts of this process since its start, and its part in those of all processes."""

    def __init__(
        self,
        store: UsageStore,
        price: Price = lambda _metadata, _model: None,
        shared: SharedUsage | None = None,
    ) -> None:
        self._file = store
        self._shared = shared
        self._store = shared or store
        self._price = price
        self._store.add_source(self)
        self._models: dict[str, UsageCounts] = {}
        self._unwritten: dict[Key, UsageCounts] = {}
        self._recent: dict[Key, UsageCounts] = {}
        """Answers of the API that are in neither of the two yet: each is added up once, not twice."""
        self._hits: dict[tuple[str, str], int] = {}
        """Answers from the cache by model and client that are in neither of the two either."""
        self._unpriced: deque[tuple[Key, Metadata]] = deque(maxlen=MAX_UNPRICED)
        """Answers that came before the prices; they are priced when those come."""

    @property
    def models(self) -> dict[str, UsageCounts]:
        """By model, since the start."""
        self._gather()
        return self._models

    def count(self, model: str, client: str, counts: UsageCounts) -> None:
        """Add what a call used."""
        self._add((self._store.today, model, client), counts)

    def count_answer(self, model: str, client: str, metadata: Metadata) -> None:
        """Add a call that the API answered; one without a cost is priced when that is known."""
        used, cost = metadata.usage, metadata.cost_usd
        key = (self._store.today, model, client)
        counts = self._recent.get(key)
        if counts is None:
            counts = self._recent[key] = UsageCounts()
        counts.calls += 1
        counts.prompt_tokens += used.prompt_tokens
        counts.completion_tokens += used.completion_tokens
        counts.total_tokens += used.total_tokens
        if cost is not None:
            counts.cost_usd += cost
        else:
            counts.unpriced += 1
            if used.total_tokens:
                self._unpriced.append((key, metadata))
        self._store.write_soon()

    def _gather(self) -> None:
        """Add everything that was only noted to both sums."""
        recent, self._recent = self._recent, {}
        for key, counts in recent.items():
            self._add(key, counts)
        self._count_hits()
        self._price_late()

    def _price_late(self) -> None:
        for _ in range(len(self._unpriced)):
            key, metadata = self._unpriced.popleft()
            cost = self._price(metadata, key[1])
            if cost is None:
                self._unpriced.append((key, metadata))
            else:
                self._add(key, UsageCounts(cost_usd=cost, unpriced=-1))

    def _add(self, key: Key, counts: UsageCounts) -> None:
        self._models.setdefault(key[1], UsageCounts()).add(counts)
        self._unwritten.setdefault(key, UsageCounts()).add(counts)
        self._store.write_soon()

    def count_hit(self, model: str, client: str) -> None:
        """Add a call that was answered from the cache. On the way of the fastest answers: nothing is made."""
        key = (model, client)
        self._hits[key] = self._hits.get(key, 0) + 1
        self._store.write_soon()

    def _count_hits(self) -> None:
        hits, self._hits = self._hits, {}
        for (model, client), count in hits.items():
            self.count(model, client, UsageCounts(calls=count, cache_hits=count))

    async def today(self) -> dict[str, UsageCounts]:
        """Return the counts of today by model, of all processes of this user."""
        day = self._store.today
        try:
            rows = await self.history(Span(day, day), by=("model",))
        except BridgeError as error:
            _log.warn("usage cannot be read", reason=str(error))
            return self.models
        return {row.model: row.counts for row in rows}

    async def history(self, span: Span, by: Collection[str]) -> list[UsageRow]:
        """Return the counts of some days, of all processes that share them; raises `BridgeError`."""
        if self._shared is not None:
            return await self._shared.history(span, by)
        return await self._file.submit(lambda connection: read_history(connection, span, by))

    def take_counts(self) -> dict[Key, UsageCounts]:
        """Hand the counts over that are not written yet."""
        self._gather()
        taken, self._unwritten = self._unwritten, {}
        return taken

    def take(self) -> tuple[Work[None], Callable[[], None]] | None:
        """Do the same for a transaction in SQLite, with a way to take them back."""
        taken = self.take_counts()
        if not taken:
            return None

        def write(connection: sqlite3.Connection) -> None:
            for (day, model, client), counts in taken.items():
                add_usage(connection, day, model, client, counts)

        def restore() -> None:
            for key, counts in taken.items():
                self._unwritten.setdefault(key, UsageCounts()).add(counts)

        return write, restore


def add_usage(connection: sqlite3.Connection, day: str, model: str, client: str, counts: UsageCounts) -> None:
    """Add to the counts of a day, a model and a client."""
    from .usage_store import counted_client

    name = counted_client(connection, day, client)
    values = (getattr(counts, field) for field in counts.__struct_fields__)
    connection.execute(_ADD, (day, model, name, *values))


def read_history(connection: sqlite3.Connection, span: Span, by: Collection[str]) -> list[UsageRow]:
    """Read the counts of some days, told apart by some of `DIMENSIONS`."""
    chosen = [name in by for name in DIMENSIONS]
    rows = connection.execute(_HISTORY, (span.first, span.last, *chosen, MAX_ROWS)).fetchall()
    return [UsageRow(UsageCounts(*counts), day, model, client) for day, model, client, *counts in rows]
