"""Entries: one speed record of a day's file, as read and as written.

The time is read from `speedMs`, the contract's key, or from `speed_ms`, which the original program writes.
Data beyond the contract has keys of its own, which the original program ignores.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType, field

from .layout import Phase

MAX_MS = 2**63 - 1

Milliseconds = Annotated[int, Meta(ge=0, le=MAX_MS)]
Name = Annotated[str, Meta(min_length=1)]
Measure = Literal["solving", "execution"]
"""Solving: a model was timed until it had the solution. Execution: its program while it ran."""
Source = Literal["claimed", "measured"]
"""Whether the time was reported by a model, or taken by a clock."""
RecordKey = Literal["speedMs", "speed_ms"]

SOLVING: Measure = "solving"
EXECUTION: Measure = "execution"
CLAIMED: Source = "claimed"
MEASURED: Source = "measured"


class Group(NamedTuple):
    """The runs that may be compared with each other: of one LLM, one phase, one measure."""

    llm: str
    phase: int
    measure: Measure


class Entry(Struct, gc=False):
    """One record as read. Unknown values of the newer keys are ignored: other programs may write them."""

    llm: Name
    phase: Phase
    timestamp: str = ""
    speed_ms: Milliseconds | UnsetType = field(default=UNSET, name="speedMs")
    original_speed_ms: Milliseconds | UnsetType = field(default=UNSET, name="speed_ms")
    measure_key: Any = field(default=None, name="measure")
    source_key: Any = field(default=None, name="source")
    withdrawn: Any = None

    @property
    def time(self) -> int:
        """The time in milliseconds; decoding has made sure that there is one."""
        found = self.original_speed_ms if isinstance(self.speed_ms, UnsetType) else self.speed_ms
        return 0 if isinstance(found, UnsetType) else found

    @property
    def measure(self) -> Measure:
        """The measure; without the key it is solving time, as in the contract."""
        return EXECUTION if self.measure_key == EXECUTION else SOLVING

    @property
    def source(self) -> Source:
        """Whether the time was measured; without the key it counts as claimed."""
        return MEASURED if self.source_key == MEASURED else CLAIMED

    @property
    def is_withdrawn(self) -> bool:
        """Whether the record no longer counts."""
        return bool(self.withdrawn)


class NewEntry(Struct, frozen=True):
    """One record as written."""

    llm: str
    phase: int
    time: int
    timestamp: str
    measure: Measure | None = None
    source: Source | None = None
    withdrawn: str | None = None
    """When it was withdrawn; set only for records copied from a database."""

    @property
    def group(self) -> Group:
        """The group that the record counts in."""
        return Group(self.llm, self.phase, self.measure or SOLVING)


def format_timestamp(seconds: float) -> str:
    """Format seconds since the epoch as ISO 8601 in UTC, with milliseconds."""
    whole, thousandths = divmod(int(seconds * 1000), 1000)
    return f"{_format_second(whole)}.{thousandths:03}Z"


@lru_cache(maxsize=4)  # many records come within one second
def _format_second(whole: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
