"""Transfer: copy records, attempts and aliases between a data folder and the database. Blocks.

Both directions add what is missing and remove nothing. Equal records are counted, so a transfer can be run
again after a failure, or while others record, and stores nothing twice.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
from msgspec import Struct

from bridgehead.runtime import durable
from bridgehead.runtime.errors import StorageError

from ..files import layout
from ..files.attempts import Attempts, AttemptStep
from ..files.day_file import DayFile
from ..files.entries import CLAIMED, RANKED, UNKNOWN_MOMENT, Entry, NewEntry, moment_of
from ..files.locking import FolderLock
from ..files.names import read_aliases
from ..files.recorder import key_of_attempt
from ..files.records import Records
from ..workspace import Workspace
from .attempts import DatabaseAttempts
from .records import DatabaseRecords

if TYPE_CHECKING:
    from bridgehead.runtime.stores import postgres


# Takes the day's row lock, as every writer does, and makes readers reread the whole day.
_BUMP = """\
insert into aoc_days (year, day, revision, rewritten) values ($1, $2, 1, 1)
on conflict (year, day) do update set revision = aoc_days.revision + 1, rewritten = aoc_days.revision + 1
returning revision"""
_EXISTING = """\
select llm, phase, time, moment, measure from aoc_records where year = $1 and day = $2"""
_COLUMNS = ["year", "day", "phase", "llm", "time", "moment", "measure", "source", "grade", "details"]
_COLUMNS += ["withdrawn", "revision", "key", "moment_utc"]
_IMPORT_SECONDS = 600.0

Content = tuple[str, int, int, str, str | None]
"""Identifies a record: LLM, phase, time, timestamp and measure."""


class TransferResult(Struct):
    """How much was copied, and why the rest was not."""

    records: int = 0
    steps: int = 0
    aliases: int = 0
    problems: list[str] = msgspec.field(default_factory=list)


def content_of(entry: Entry) -> Content:
    """Return the content of a record; a measure of another program becomes None."""
    measure = entry.measure_key if entry.measure_key in {"solving", "execution"} else None
    return (entry.llm, entry.phase, entry.time, entry.timestamp, measure)


# --- folder to database ------------------------------------------------------------------------------------


def import_folder(workspace: Workspace, database: postgres.Database) -> TransferResult:
    """Copy the workspace's folders into the database."""
    result = TransferResult()
    for day in layout.DAYS:
        try:
            stored_entries = Records(workspace.folders.speeds, workspace.seals).entries([day]).get(day, [])
        except StorageError as problem:
            result.problems.append(problem.message)
            continue
        # PostgreSQL's text cannot hold a zero byte. Reversed: files are newest first, ids grow with time.
        entries = [entry for entry in reversed(stored_entries) if "\0" not in entry.llm + entry.timestamp]
        result.problems += [f"A record of day {day} has a zero byte in it and cannot be stored."] * (
            len(stored_entries) - len(entries)
        )
        if entries:
            result.records += database.wait_for(_import_day(database, workspace.year, day, entries))
    attempts = Attempts(workspace.folders.attempts, 0, workspace.seals)
    stored = DatabaseAttempts(database, workspace.year)
    for day in layout.DAYS:
        result.steps += _add_steps(attempts.steps(day), stored.steps(day), day, stored.append)
    names = read_aliases(workspace.folders.aliases).names

    async def store_aliases(connection: postgres.Connection) -> None:
        await connection.execute(
            "insert into aoc_aliases (name, llm) select * from unnest($1::text[], $2::text[]) "
            "on conflict (name) do update set llm = excluded.llm",
            list(names),
            list(names.values()),
        )

    database.wait_for(database.writer.run(store_aliases))
    result.aliases = len(names)
    return result


async def _import_day(database: postgres.Database, year: int, day: int, entries: list[Entry]) -> int:
    async def store(connection: postgres.Connection) -> int:
        async with connection.transaction():
            # A large day takes longer than the timeout of a record; `_IMPORT_SECONDS` limits the whole.
            await connection.execute("set local statement_timeout = 0")
            revision = await connection.fetchval(_BUMP, year, day)
            rows = await connection.fetch(_EXISTING, year, day)
            existing: Counter[Content] = Counter(tuple(row) for row in rows)
            new = list(_missing_entries(entries, existing))
            values = []
            for entry in new:
                llm, phase, time, moment, measure = content_of(entry)
                source = entry.source_key if entry.source_key in {"claimed", "measured"} else None
                grade = None if entry.grade == CLAIMED else entry.grade
                details = None if entry.details_key is None else msgspec.json.encode(entry.details).decode()
                withdrawn = str(entry.withdrawn) if entry.is_withdrawn else None
                # Only with a valid seal: a copied or edited line must not claim the key of another record.
                attempt = entry.details.attempt if entry.grade in RANKED else None
                key = uuid4() if attempt is None else key_of_attempt(attempt)
                row = (year, day, phase, llm, time, moment, measure, source, grade, details)
                values.append((*row, withdrawn, revision, key, _moment_utc(moment)))
            await connection.copy_records_to_table("aoc_records", records=values, columns=_COLUMNS)
        return len(new)

    return await database.writer.run(store, seconds=_IMPORT_SECONDS)


def _moment_utc(moment: str) -> str | None:
    """Return a timestamp in sortable UTC form; None if it already sorts correctly without its Z."""
    microseconds = moment_of(moment)
    if microseconds == UNKNOWN_MOMENT:
        return ""
    if moment.endswith("Z"):
        return None
    in_utc = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=microseconds)
    # Milliseconds if that is exact: then it equals the same moment in our own format.
    return in_utc.replace(tzinfo=None).isoformat(timespec="microseconds").removesuffix("000")


def _missing_entries(entries: Iterable[Entry], existing: Counter[Content]) -> Iterable[Entry]:
    """Yield the entries that the other side lacks. Consumes `existing`, so that duplicates are counted."""
    for entry in entries:
        content = content_of(entry)
        if existing[content]:
            existing[content] -= 1
        else:
            yield entry


def _add_steps(
    steps: list[AttemptStep],
    existing: list[AttemptStep],
    day: int,
    append: Callable[[int, list[AttemptStep]], None],
) -> int:
    # Encoded steps are compared as bytes, which covers every field.
    known = Counter(msgspec.json.encode(step) for step in existing)
    new = []
    for step in steps:
        line = msgspec.json.encode(step)
        if known[line]:
            known[line] -= 1
        else:
            new.append(step)
    if new:
        append(day, new)
    return len(new)


# --- database to folder ------------------------------------------------------------------------------------


def export_folder(
    workspace: Workspace, folders: layout.Folders, database: postgres.Database
) -> TransferResult:
    """Copy the workspace's year from the database into folders."""
    result = TransferResult()
    for folder in (folders.speeds, folders.attempts):
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    existing = Records(folders.speeds).entries(layout.DAYS)
    lock = FolderLock(folders.speeds, 10.0)
    for day, entries in DatabaseRecords(database, workspace.year).entries(layout.DAYS).items():
        known = Counter(map(content_of, existing.get(day, [])))
        new = [
            NewEntry(
                *content_of(entry),  # type: ignore[arg-type]
                entry.grade,
                # Decoded, so that keys are written in our order; JSONB orders them differently.
                None if entry.details_key is None else entry.details,
                source=entry.source_key,
                withdrawn=str(entry.withdrawn) if entry.is_withdrawn else None,
            )
            for entry in _missing_entries(reversed(entries), known)
        ]
        if new:
            file = DayFile(lock, day, workspace.clock, seals=workspace.seals)
            file.append(new)
            result.records += len(new)
    attempts = Attempts(folders.attempts, 10.0, workspace.seals)
    stored = DatabaseAttempts(database, workspace.year)
    for day in layout.DAYS:
        result.steps += _add_steps(stored.steps(day), attempts.steps(day), day, attempts.append)
    names = DatabaseRecords(database, workspace.year).aliases().names
    lists: dict[str, list[str]] = {}
    # The folder's own aliases stay; where both sides have a name, the database wins.
    for name, llm in {**read_aliases(folders.aliases).names, **names}.items():
        lists.setdefault(llm, []).append(name)
    if lists:
        durable.replace(Path(folders.aliases), msgspec.json.format(msgspec.json.encode(lists)) + b"\n")
    result.aliases = len(names)
    return result
