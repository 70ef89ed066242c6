"""Entries: one speed record of a day's file, as read and as written.

The time is read from `speedMs`, the contract's key, or from `speed_ms`, which the original program writes.
Data beyond the contract is in additional keys, which the original program ignores: `grade` says how far the
time can be trusted, `seal` proves the grade (`seals.py`), `details` say more about the run. A record's id is
derived from its content, so that records of other programs have one too.
"""

from __future__ import annotations

import time
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from .layout import Phase

MAX_MS = 2**63 - 1

Milliseconds = Annotated[int, Meta(ge=0, le=MAX_MS)]
Name = Annotated[str, Meta(min_length=1)]
Measure = Literal["solving", "execution"]
"""Solving: a model was timed until it had the solution. Execution: its program while it ran."""
Grade = Literal["verified", "measured", "claimed"]
"""How far a time can be trusted; the server alone assigns it.

Verified: the server ran the solver or the agent in isolation and checked the answer. Measured: the server's
clock, a checked answer, a limited number of tries, and nothing of the phase given out before the start.
Claimed: everything else.
"""
RecordKey = Literal["speedMs", "speed_ms"]

SOLVING: Measure = "solving"
EXECUTION: Measure = "execution"
VERIFIED: Grade = "verified"
MEASURED: Grade = "measured"
CLAIMED: Grade = "claimed"
GRADES: tuple[Grade, ...] = (VERIFIED, MEASURED, CLAIMED)
RANKED: frozenset[Grade] = frozenset({VERIFIED, MEASURED})
"""The grades that are ranked; claimed times are listed beside them."""
UNKNOWN_MOMENT = -(2**62)
ID_DIGITS = 12
"""Hex digits of a record's id."""


class Details(Struct, frozen=True, omit_defaults=True):
    """Details of a run besides its time; stored with the record."""

    attempt: str | None = None
    """The attempt that the run ended. An attempt is recorded once."""
    tries: int | None = None
    wrong: int | None = None
    """How many of the tries were wrong."""
    cpu_ms: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    agent: str | None = None
    version: str | None = None
    """Of the agent."""
    model: str | None = None
    language: str | None = None
    prompt_hash: str | None = None
    transcript: str | None = None
    """The path of the agent's transcript."""
    host: str | None = None
    caller: str | None = None
    """The token that made the record over HTTP. Only it, or the operator, may withdraw the record."""


class Group(NamedTuple):
    """Runs of one LLM, one phase, one measure and one grade."""

    llm: str
    phase: int
    measure: Measure
    grade: Grade = CLAIMED


class Entry(Struct, gc=False):
    """One record as read. Unknown values of the newer keys are ignored: other programs may write them."""

    llm: Name
    phase: Phase
    timestamp: str = ""
    speed_ms: Milliseconds | UnsetType = field(default=UNSET, name="speedMs")
    original_speed_ms: Milliseconds | UnsetType = field(default=UNSET, name="speed_ms")
    measure_key: Any = field(default=None, name="measure")
    source_key: Any = field(default=None, name="source")
    """From version 0.2: the caller's claim about its clock. Kept, but it never affects the grade."""
    withdrawn: Any = None
    grade_key: Any = field(default=None, name="grade")
    seal: Any = None
    details_key: Any = field(default=None, name="details")

    @property
    def time(self) -> int:
        """The time in milliseconds; decoding has made sure that there is one."""
        time = self.original_speed_ms if isinstance(self.speed_ms, UnsetType) else self.speed_ms
        return 0 if isinstance(time, UnsetType) else time

    @property
    def measure(self) -> Measure:
        """The measure; without the key it is solving time, as in the contract."""
        return EXECUTION if self.measure_key == EXECUTION else SOLVING

    @property
    def grade(self) -> Grade:
        """The grade as written. Pass entries read from a file through `Seals.demote` first."""
        return self.grade_key if self.grade_key in GRADES else CLAIMED

    @property
    def details(self) -> Details:
        """The details of the run; empty if another program stored something else under this key."""
        try:
            return msgspec.convert(self.details_key or {}, Details)
        except msgspec.ValidationError:
            return Details()

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
    grade: Grade = CLAIMED
    details: Any = None
    """`Details`, or the value that another program stored there."""
    seal: str | None = None
    source: str | None = None
    withdrawn: str | None = None
    """When it was withdrawn; set only for records copied from a database."""

    @property
    def attempt(self) -> str | None:
        """The attempt that the run ended."""
        return self.details.attempt if isinstance(self.details, Details) else None

    @property
    def group(self) -> Group:
        """The group that the record counts in."""
        return Group(self.llm, self.phase, self.measure or SOLVING, self.grade)


class Wanted(NamedTuple):
    """Identifies a record by its id, or by LLM, phase and timestamp, which several records may share."""

    id: str | None = None
    llm: str | None = None
    phase: int | None = None
    timestamp: str | None = None
    owner: str | None = None
    """Only a record of this caller; None for the operator, who may choose any."""
    is_withdrawn: bool = False
    """Whether to find a record that was withdrawn, to count it again."""

    def __str__(self) -> str:
        """Describe the wanted record for error messages."""
        if self.id is not None:
            return f"with the id {self.id}"
        return f"of {self.llm} in phase {self.phase} at {self.timestamp}"


def id_of(day: int, entry: Entry | NewEntry) -> str:
    """Return the id of a record: a digest of its content.

    Records with the same id are equal in every field, so either may be chosen.
    """
    # The database makes the same digest: see `database/recorder.py`.
    measure = entry.measure or SOLVING
    content = f"{day}\n{entry.phase}\n{entry.time}\n{measure}\n{entry.timestamp}\n{entry.llm}"
    return sha256(content.encode(errors="surrogatepass")).hexdigest()[:ID_DIGITS]


def format_timestamp(seconds: float) -> str:
    """Format seconds since the epoch as ISO 8601 in UTC, with milliseconds."""
    whole, thousandths = divmod(int(seconds * 1000), 1000)
    return f"{_format_second(whole)}.{thousandths:03}Z"


@lru_cache(maxsize=4)  # many records come within one second
def _format_second(whole: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))


def moment_of(timestamp: str) -> int:
    """Return a timestamp in microseconds since the epoch; the oldest of all if it is not ISO 8601."""
    try:
        return int(datetime.fromisoformat(timestamp).timestamp() * 1_000_000)
    except (ValueError, OverflowError, OSError):  # OSError: on Windows, for local times far from today
        return UNKNOWN_MOMENT
