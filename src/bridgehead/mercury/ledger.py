"""Ledger: what this user's processes used today, in one file that they share.

One owner, locked while it is changed, replaced as a whole. The day is the UTC day, and begins at nothing.
Money that is reserved counts as spent until it is corrected, so a process that dies in between leaves the
total too high and never too low. Blocking: call it from a thread.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout
from msgspec import Struct

from bridgehead.runtime import durable
from bridgehead.runtime.clock import Clock
from bridgehead.runtime.errors import StorageError

from .tally import Tally

LOCK_SECONDS = 10.0
_DAY_SECONDS = 86_400


class Day(Struct):
    """One day's totals."""

    day: str
    committed_usd: float = 0.0
    """Spent, and reserved for what is under way."""
    models: dict[str, Tally] = {}


class OverBudget(Exception):
    """There is not enough left of the day's budget."""

    def __init__(self, left: float) -> None:
        super().__init__()
        self.left = left


class Ledger:
    """The file of today's totals."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._path = folder / "today.json"
        self._lock = FileLock(folder / "today.lock", timeout=LOCK_SECONDS, mode=0o600)
        self._clock = clock

    def read(self) -> Day:
        """Give the day so far."""
        today = day_of(self._clock.now())
        try:
            found = msgspec.json.decode(self._path.read_bytes(), type=Day)
        except FileNotFoundError:
            return Day(today)
        except (OSError, msgspec.DecodeError) as problem:
            raise self._unusable(problem) from problem
        return found if found.day == today else Day(today)

    def commit(self, amount: float, tallies: dict[str, Tally], budget: float | None = None) -> Day:
        """Add money and totals to the day; raises `OverBudget`, and changes nothing, where it is too much."""
        try:
            with self._lock:
                day = self.read()
                if budget is not None and day.committed_usd + amount > budget:
                    raise OverBudget(max(0.0, budget - day.committed_usd))
                day.committed_usd = max(0.0, round(day.committed_usd + amount, 12))
                for model, tally in tallies.items():
                    day.models.setdefault(model, Tally()).add(tally)
                durable.replace(self._path, msgspec.json.encode(day))
                return day
        except (OSError, Timeout) as problem:
            raise self._unusable(problem) from problem

    def _unusable(self, problem: Exception) -> StorageError:
        return StorageError(
            f"The file of today's usage, {self._path}, cannot be used: {type(problem).__name__}.",
            next_step="Look at the file and its folder; removing it starts the day's totals at nothing.",
        )


def day_of(now: float) -> str:
    """Give the UTC day of a time."""
    return datetime.fromtimestamp(now, UTC).date().isoformat()


def seconds_to_midnight(now: float) -> float:
    """Give the seconds until the next UTC day."""
    return _DAY_SECONDS - now % _DAY_SECONDS
