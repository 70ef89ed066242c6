"""Transfer: moves records, attempts and aliases between a data folder and the database. Blocks.

Both ways add what is missing and take nothing away: of equal records the other side has as many as this one.
So either may be run again, after a failure or while somebody records, and nothing is there twice.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
from msgspec import Struct

from bridgehead.runtime import durable
from bridgehead.runtime.errors import StorageError

from ..files import layout
from ..files.attempts import Attempts, Step
from ..files.day_file import DayFile
from ..files.entries import Entry, NewEntry
from ..files.locking import FolderLock
from ..files.names import read_aliases
from ..files.records import Records
from .attempts import DatabaseAttempts
from .records import DatabaseRecords

if TYPE_CHECKING:
    from bridgehead.runtime.stores import postgres

    from ..workspace import Workspace

_BUMP = """\
insert into aoc_days (year, day, revision, rewritten) values ($1, $2, 1, 1)
on conflict (year, day) do update set revision = aoc_days.revision + 1, rewritten = aoc_days.revision + 1
returning revision"""
_THERE = """\
select llm, phase, time, moment, measure, source from aoc_records where year = $1 and day = $2"""
_COLUMNS = ["year", "day", "phase", "llm", "time", "moment", "measure", "source", "withdrawn"]
_COLUMNS += ["revision", "key"]
_MINUTES = 600.0

Content = tuple[str, int, int, str, str | None, str | None]
"""What makes two records the same one: everything but whether it was taken back."""


class Moved(Struct):
    """What was moved, and what was not and why."""

    records: int = 0
    steps: int = 0
    aliases: int = 0
    problems: list[str] = msgspec.field(default_factory=list)


def content_of(entry: Entry | NewEntry) -> Content:
    """Return what a record says, without whether it counts."""
    measure = entry.measure_key if isinstance(entry, Entry) else entry.measure
    source = entry.source_key if isinstance(entry, Entry) else entry.source
    known = (
        (measure if measure in {"solving", "execution"} else None),
        (source if source in {"claimed", "measured"} else None),
    )
    return (entry.llm, entry.phase, entry.time, entry.timestamp, *known)


# --- folder to database ------------------------------------------------------------------------------------


def import_folder(workspace: Workspace, database: postgres.Database) -> Moved:
    """Bring what the event's folders hold into the database."""
    moved = Moved()
    for day in layout.DAYS:
        try:
            found = Records(workspace.folders.speeds).entries([day]).get(day, [])
        except StorageError as problem:
            moved.problems.append(problem.message)
            continue
        entries = [entry for entry in reversed(found) if _fits(entry, day, moved)]
        if entries:
            moved.records += database.wait_for(_import_day(database, workspace.year, day, entries))
    attempts, stored = Attempts(workspace.folders.attempts, 0), DatabaseAttempts(database, workspace.year)
    for day in layout.DAYS:
        moved.steps += _add_steps(attempts.steps(day), stored.steps(day), day, stored.append)
    moved.aliases = database.wait_for(
        _import_aliases(database, read_aliases(workspace.folders.aliases).names)
    )
    return moved


def _fits(entry: Entry, day: int, moved: Moved) -> bool:
    is_storable = "\0" not in entry.llm + entry.timestamp
    if not is_storable:
        moved.problems.append(f"A record of day {day} has a zero byte in it and cannot be stored.")
    return is_storable


async def _import_day(database: postgres.Database, year: int, day: int, entries: list[Entry]) -> int:
    async def store(connection: postgres.Connection) -> int:
        async with connection.transaction():
            await connection.execute("set local statement_timeout = 0")
            revision = await connection.fetchval(_BUMP, year, day)
            rows = await connection.fetch(_THERE, year, day)
            there: Counter[Content] = Counter(tuple(row) for row in rows)
            new = list(_surplus(entries, there))
            values = [(year, day, *_values(entry), revision, uuid4()) for entry in new]
            await connection.copy_records_to_table("aoc_records", records=values, columns=_COLUMNS)
        return len(new)

    return await database.writer.run(store, seconds=_MINUTES)


def _surplus(entries: Iterable[Entry], there: Counter[Content]) -> Iterable[Entry]:
    """Give the entries that the other side has not, counting equal ones."""
    for entry in entries:
        content = content_of(entry)
        if there[content]:
            there[content] -= 1
        else:
            yield entry


def _values(entry: Entry) -> tuple[object, ...]:
    llm, phase, time, moment, measure, source = content_of(entry)
    withdrawn = None if not entry.is_withdrawn else str(entry.withdrawn)
    return phase, llm, time, moment, measure, source, withdrawn


async def _import_aliases(database: postgres.Database, names: dict[str, str]) -> int:
    async def store(connection: postgres.Connection) -> None:
        await connection.execute(
            "insert into aoc_aliases (name, llm) select * from unnest($1::text[], $2::text[]) "
            "on conflict (name) do update set llm = excluded.llm",
            list(names),
            list(names.values()),
        )

    await database.writer.run(store)
    return len(names)


def _add_steps(
    given: list[Step], there: list[Step], day: int, append: Callable[[int, list[Step]], None]
) -> int:
    known = Counter(msgspec.json.encode(step) for step in there)
    new = []
    for step in given:
        line = msgspec.json.encode(step)
        if known[line]:
            known[line] -= 1
        else:
            new.append(step)
    if new:
        append(day, new)
    return len(new)


# --- database to folder ------------------------------------------------------------------------------------


def export_folder(workspace: Workspace, folders: layout.Folders, database: postgres.Database) -> Moved:
    """Write what the database holds of the event into folders."""
    moved = Moved()
    for folder in (folders.speeds, folders.attempts):
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    there = Records(folders.speeds).entries(layout.DAYS)
    lock = FolderLock(folders.speeds, 10.0)
    for day, entries in DatabaseRecords(database, workspace.year).entries(layout.DAYS).items():
        known = Counter(map(content_of, there.get(day, [])))
        new = [_new(entry) for entry in _surplus(reversed(entries), known)]
        if new:
            file = DayFile(lock, day, workspace.clock)
            file.append(new)
            file.fold()
            moved.records += len(new)
    attempts, stored = Attempts(folders.attempts, 10.0), DatabaseAttempts(database, workspace.year)
    for day in layout.DAYS:
        moved.steps += _add_steps(stored.steps(day), attempts.steps(day), day, attempts.append)
    moved.aliases = _export_aliases(
        DatabaseRecords(database, workspace.year).aliases().names, folders.aliases
    )
    return moved


def _new(entry: Entry) -> NewEntry:
    llm, phase, time, moment, measure, source = content_of(entry)
    withdrawn = None if not entry.is_withdrawn else str(entry.withdrawn)
    return NewEntry(llm, phase, time, moment, measure, source, withdrawn)  # type: ignore[arg-type]


def _export_aliases(names: dict[str, str], path: str) -> int:
    from pathlib import Path

    merged = {**read_aliases(path).names, **names}
    lists: dict[str, list[str]] = {}
    for name, llm in merged.items():
        lists.setdefault(llm, []).append(name)
    if lists:
        durable.replace(Path(path), msgspec.json.format(msgspec.json.encode(lists)) + b"\n")
    return len(names)
