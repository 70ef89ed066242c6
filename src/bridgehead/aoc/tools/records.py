"""Records: the tools that record a time and withdraw one."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from bridgehead.mcp import Answer, Arguments, Bridge, Context
from bridgehead.runtime.callers import is_operator
from bridgehead.runtime.errors import InvalidArgument

from ..errors import CONTRACT_REVISION
from ..files.entries import Details, Grade, Measure, Milliseconds, Name, Wanted, id_of
from ..files.layout import Day, Phase, has_puzzle, last_day
from ..files.names import clean_name
from ..files.recorder import NewRun, key_of
from ..workspace import Workspace


class RecordSpeed(Arguments):
    """Arguments of `record_speed`. The contract has only day, phase, speed_ms and llm_name.

    Accepted but not published: `llm`, an alias of `llm_name`, and `source`, which once said whether a clock
    took the time and is ignored.
    """

    day: Day
    phase: Phase
    speed_ms: Milliseconds
    llm_name: Name | UnsetType = UNSET
    llm: Name | UnsetType = UNSET
    measure: Measure | UnsetType = UNSET
    source: str | UnsetType = UNSET


DESCRIPTION = "Record the solving speed for an LLM on a specific day and phase"
CONTRACT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "day": {"type": "integer", "description": "Day number"},
        "phase": {"type": "integer", "description": "Phase (1 or 2)"},
        "llm_name": {"type": "string", "description": "LLM name"},
        "speed_ms": {"type": "integer", "description": "Solving time in milliseconds"},
    },
    "required": ["day", "phase", "llm_name", "speed_ms"],
}
"""The contract's schema, for clients of its revision; arguments are checked against `RecordSpeed`."""

RECORD_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "day": {"type": "integer", "description": "Day number (1-25)"},
        "phase": {"type": "integer", "description": "Phase (1 or 2)"},
        "llm_name": {"type": "string", "description": "LLM name, 1 to 200 characters"},
        "speed_ms": {"type": "integer", "description": "Time in whole milliseconds, 0 or more"},
        "measure": {
            "type": "string",
            "enum": ["solving", "execution"],
            "description": "solving: until the answer was right; execution: one run of the program",
        },
    },
    "required": ["day", "phase", "llm_name", "speed_ms"],
    "additionalProperties": False,
}


class RecordedSpeed(Struct, frozen=True):
    """A stored record, with the figures of this LLM's runs of the same day, phase and measure, in ms."""

    day: int
    phase: int
    llm: str
    speed_ms: int
    timestamp: str
    id: str
    measure: Measure
    grade: Grade
    n: int
    best: int
    median: float
    mean: float
    stdev: Annotated[float | None, Meta(description="null for a single run")]


class WithdrawRecord(Arguments):
    """Names the record to withdraw: by its id, or by phase, LLM and timestamp."""

    day: Day
    id: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    phase: Phase | UnsetType = UNSET
    llm_name: str | UnsetType = UNSET
    timestamp: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    llm: str | UnsetType = UNSET
    undo: bool = False


WITHDRAW_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "day": RECORD_SCHEMA["properties"]["day"],
        "id": {"type": "string", "description": "From record_speed or speed_history"},
        "phase": {"type": "integer", "description": "Without id: 1 or 2"},
        "llm_name": {"type": "string", "description": "Without id"},
        "timestamp": {"type": "string", "description": "Without id"},
        "undo": {"type": "boolean", "description": "Count a withdrawn record again"},
    },
    "required": ["day"],
    "additionalProperties": False,
}


class Withdrawn(Struct, frozen=True):
    """A record that no longer counts, or counts again."""

    day: int
    phase: int
    llm: str
    speed_ms: int
    timestamp: str
    id: str


def declare(bridge: Bridge[Workspace]) -> None:
    """Declare the tools."""
    bridge.tool(
        f"{DESCRIPTION}. It counts as claimed, whoever took the time; only an attempt can be measured. "
        "withdraw_record takes it back.",
        title="Record speed",
        contract_description=DESCRIPTION,
        read_only=False,
        destructive=False,
        idempotent=False,
        open_world=False,
        contract_schema=CONTRACT_SCHEMA,
        input_schema=RECORD_SCHEMA,
    )(record_speed)
    bridge.tool(
        "Take back a record that was wrong. It stays in the file, marked, and no ranking counts it. "
        "With undo it counts again.",
        title="Withdraw record",
        read_only=False,
        destructive=True,
        effect="withdraws (stays in the file)",
        idempotent=False,
        open_world=False,
        input_schema=WITHDRAW_SCHEMA,
    )(withdraw_record)


async def record_speed(args: RecordSpeed, ctx: Context[Workspace]) -> Answer[RecordedSpeed]:
    """Record a time; answer once it is durable."""
    name = choose_name(args.llm_name, args.llm)
    if isinstance(name, UnsetType):
        raise InvalidArgument("llm_name is missing.", next_step="Give the name of the model that solved it.")
    llm = clean_name(name)
    made_by = None if ctx.principal is None else Details(caller=ctx.principal)
    run = NewRun(args.day, args.phase, llm, args.speed_ms, args.measure or None, details=made_by)
    # A request that a client repeats after a lost answer is recorded once.
    key = None if ctx.idempotency_key is None else key_of(ctx.principal, ctx.idempotency_key)
    entry, figures, average = await ctx.state.recorder.record(run, id(ctx.connection), key)
    text = f"Recorded {llm} Day {args.day} Phase {args.phase}: {args.speed_ms}ms (avg: {average}ms)"
    # Clients of the contract's revision get exactly the contract's text; others get a note about a doubtful
    # record.
    doubts: list[str] = []
    if ctx.revision.name != CONTRACT_REVISION:
        year = ctx.state.year
        if args.speed_ms == 0:
            doubts.append("0 ms is less than any solution takes")
        if args.day > last_day(year):
            doubts.append(f"the event of {year} has {last_day(year)} days")
        elif not has_puzzle(ctx.state.folders.instructions, args.day):
            doubts.append(f"day {args.day} has no puzzle here")
    record = id_of(args.day, entry)
    take_back = f'If it is wrong, take it back: withdraw_record(day={args.day}, id="{record}")'
    structured = RecordedSpeed(
        day=args.day,
        phase=args.phase,
        llm=llm,
        speed_ms=args.speed_ms,
        timestamp=entry.timestamp,
        id=record,
        measure=entry.measure or "solving",
        grade=entry.grade,
        n=figures.n,
        best=figures.best,
        median=figures.median,
        mean=figures.mean,
        stdev=figures.stdev,
    )
    notes = (f"Is this right? {'; '.join(doubts).capitalize()}.",) if doubts else ()
    return Answer(text, structured, notes=notes, next=(take_back,) if doubts else ())


async def withdraw_record(args: WithdrawRecord, ctx: Context[Workspace]) -> Answer[Withdrawn]:
    """Mark a record as withdrawn, or remove the mark."""
    name = choose_name(args.llm_name, args.llm)
    llm = None if isinstance(name, UnsetType) else clean_name(name)
    if args.id is UNSET and (llm is None or args.phase is UNSET or args.timestamp is UNSET):
        raise InvalidArgument(
            "The record is not named.",
            next_step="Give its id, from record_speed or speed_history, or phase, llm_name and timestamp.",
        )
    # A token may only touch what it recorded itself. Over stdio callers cannot be told apart.
    owner = None if is_operator.get() else ctx.principal or ""
    wanted = Wanted(args.id or None, llm, args.phase or None, args.timestamp or None, owner, args.undo)
    await ctx.state.settled(id(ctx.connection))
    entry = await ctx.state.recorder.withdraw(args.day, wanted)
    done = "Counts again" if args.undo else "Withdrawn"
    text = f"{done}: {entry.llm} Day {args.day} Phase {entry.phase}: {entry.time}ms of {entry.timestamp}"
    record = id_of(args.day, entry)
    return Answer(text, Withdrawn(args.day, entry.phase, entry.llm, entry.time, entry.timestamp, record))


def choose_name(llm_name: str | UnsetType, llm: str | UnsetType) -> str | UnsetType:
    """Return the name from either argument; refuse two different ones."""
    if llm_name is UNSET:
        return llm
    if llm is not UNSET and llm != llm_name:
        raise InvalidArgument("llm and llm_name are different.", next_step="Give one of them.")
    return llm_name
