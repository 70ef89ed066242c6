"""Usage command: `bridgehead mercury usage` shows usage and cost by day, model and client.

Reads the database that this user's servers write to (with a delay of up to two seconds); none of them needs
to run. `--release` gives uncertain money back to its budgets, once the payer has checked the bill.
"""

from __future__ import annotations

import getpass
import sqlite3
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bridgehead.runtime import directories, logs
from bridgehead.runtime.command_line import number, write_csv
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.stores import postgres, sqlite

from .calling import postgres_budget, postgres_usage, sqlite_budget
from .calling.budget import ReleasedSends
from .calling.sqlite_usage import FILE, open_database
from .calling.usage import DIMENSIONS, Span, UsageCounts, UsageRow, read_history
from .settings import MercurySettings

if TYPE_CHECKING:
    from rich.console import RenderableType


FORMATS = ("table", "chart", "csv", "json")
DAYS, MAX_DAYS = 30, 10_000
_WIDEST = 1_000
_BAR = "█"
_LONGEST_BAR = 50
_audit = logs.logger("mercury.audit")


def add_options(parser: ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "--days",
        type=number(int, 1, MAX_DAYS),
        default=DAYS,
        help=f"how many days up to today (default: {DAYS})",
    )
    parser.add_argument(
        "--by",
        type=_dimensions,
        default=["day"],
        metavar="NAMES",
        help=f"what to group by: any of {', '.join(DIMENSIONS)}, separated by commas (default: day)",
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="how to print it (default: table)")
    parser.add_argument(
        "--release",
        action="store_true",
        help="release the uncertain money of these days, after you have checked the API's bill",
    )
    parser.add_argument("--yes", action="store_true", help="with --release: do not ask")


def _dimensions(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in DIMENSIONS]
    if unknown:
        raise ArgumentTypeError(f"{unknown[0]!r} is not valid. Valid values are {', '.join(DIMENSIONS)}")
    return names


def show_usage(options: Namespace, environment: Mapping[str, str]) -> int:
    """Print the usage, or release uncertain money; return the exit status."""
    by, settings = options.by, MercurySettings(environment)
    span = Span.ending(datetime.now(UTC).date().isoformat(), options.days)
    if options.release:
        return _release(settings, span, is_agreed=options.yes)
    rows = _read(settings, span, by)
    if options.format == "json":
        sys.stdout.write(
            msgspec.json.format(msgspec.json.encode([_flat(row) for row in rows])).decode() + "\n"
        )
    elif options.format == "csv":
        fields = [*(name for name in DIMENSIONS if name in by), *UsageCounts.__struct_fields__]
        flat = map(_flat, rows)
        sys.stdout.write(write_csv(fields, ([row.get(name, "") for name in fields] for row in flat)))
    else:
        from rich.console import Console

        console = Console(highlight=False)
        shown = _chart(rows) if options.format == "chart" else _table(rows, by)
        if options.format == "table":  # a terminal wraps a line that is too wide; rich would cut it
            widest = Console(width=_WIDEST).measure(shown).maximum
            console = Console(highlight=False, width=max(console.width, widest))
        console.print(shown)
    return 0


def _read(settings: MercurySettings, span: Span, by: list[str]) -> list[UsageRow]:
    if settings.books_url is not None:
        with postgres.opened_in_thread(settings.books_url) as database:
            return database.wait_for(
                database.reader.run(lambda held: postgres_usage.read_history(held, span, by))
            )
    path = _file(settings)
    if not path.exists():
        return []
    try:
        # Opened like a server does, with migrations: an older file lacks tables that are read here.
        with closing(open_database(path)) as connection:
            return read_history(connection, span, by)
    except sqlite3.Error as problem:
        raise StorageError(f"The usage database {path} cannot be read: {problem}.") from problem


def _file(settings: MercurySettings) -> Path:
    return directories.open_state(settings, settings.books) / FILE


def _release(settings: MercurySettings, span: Span, *, is_agreed: bool) -> int:
    """Release the uncertain money of a span if the payer agrees; the audit log records who and how much."""
    uncertain = UsageCounts()
    for row in _read(settings, span, ["day"]):
        uncertain.add(row.counts)
    sends, days = _count(uncertain.uncertain_sends), f"from {span.first} to {span.last}"
    if not uncertain.uncertain_sends:
        sys.stdout.write(f"Nothing is uncertain {days}.\n")
        return 0
    question = f"{sends} {days} may have cost up to ${uncertain.uncertain_usd:.6f}."
    if not is_agreed:
        # Never by default in a script: released money can be spent again.
        if not sys.stdin.isatty():
            sys.stderr.write(
                f"{question} Nothing was released. Add --yes to release it without a question.\n"
            )
            return 1
        answer = input(f"{question}\nRelease it, so that budgets no longer count it? [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            sys.stdout.write("Nothing was released.\n")
            return 1
    released = _release_sends(settings, span)
    settings.configure_logs()
    for group in released:
        _audit.info(
            "uncertain money released",
            user=getpass.getuser(),
            day=group.day,
            model=group.model,
            client=group.client,
            sends=group.sends,
            usd=round(group.usd, 12),
        )
    total, count = sum(group.usd for group in released), sum(group.sends for group in released)
    sys.stdout.write(f"Released ${total:.6f} of {_count(count)} {days}.\n")
    return 0


def _count(sends: int) -> str:
    return "1 send" if sends == 1 else f"{sends:,} sends"


def _release_sends(settings: MercurySettings, span: Span) -> list[ReleasedSends]:
    if settings.books_url is not None:
        with postgres.opened_in_thread(settings.books_url) as database:
            return database.wait_for(
                database.writer.run(lambda held: postgres_budget.release_uncertain(held, span))
            )

    path = _file(settings)
    try:
        with closing(open_database(path)) as connection, sqlite.transaction(connection):
            return sqlite_budget.release_uncertain(connection, span)
    except sqlite3.Error as problem:
        raise StorageError(f"The usage database {path} cannot be changed: {problem}.") from problem


def _flat(row: UsageRow) -> dict[str, Any]:
    named = {name: getattr(row, name) for name in DIMENSIONS if getattr(row, name)}
    return {**named, **msgspec.structs.asdict(row.counts)}


def _table(rows: list[UsageRow], by: list[str]) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Column, Table

    if not rows:
        return "No usage in these days."
    names = [name for name in DIMENSIONS if name in by]
    total = UsageCounts()
    for row in rows:
        total.add(row.counts)
    titles = ("Calls", "Failed", "From\ncache", "Tokens\nin", "Tokens\nout", "Cost", "Uncertain", "Reserved")
    # Never wrapped or cut, and narrow: a column of nothing but zeros is left out.
    is_shown = [name in _ALWAYS or bool(amount) for name, amount in zip(titles, _amounts(total), strict=True)]
    figures = list(compress(titles, is_shown))
    grid = Table(
        *(Column(name.capitalize(), no_wrap=True) for name in names),
        *(Column(name, justify="right", no_wrap=True) for name in figures),
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for row in rows:
        shown = compress(_figures(row.counts), is_shown)
        grid.add_row(*(getattr(row, name) for name in names), *shown)
    if len(rows) > 1:
        grid.add_section()
        grid.add_row(*("Total", *[""] * (len(names) - 1)), *compress(_figures(total), is_shown))
    return grid


_ALWAYS = ("Calls", "Cost")


def _amounts(counts: UsageCounts) -> list[float]:
    numbers = (counts.calls, counts.errors, counts.cache_hits, counts.prompt_tokens, counts.completion_tokens)
    return [*numbers, counts.cost_usd, counts.uncertain_usd, counts.reserved_usd]


def _figures(counts: UsageCounts) -> list[str]:
    return [
        *(f"{number:,}" for number in _amounts(counts)[:5]),
        # "+": some calls had no known price and are not part of the sum.
        f"${counts.cost_usd:,.4f}{'+' if counts.unpriced else ''}",
        f"${counts.uncertain_usd:,.4f}",
        f"${counts.reserved_usd:,.4f}",
    ]


def _chart(rows: list[UsageRow]) -> RenderableType:
    """Draw a bar per row for its cost, or for its calls if nothing had a cost."""
    from rich.table import Column, Table

    if not rows:
        return "No usage in these days."
    is_paid = any(row.counts.cost_usd for row in rows)
    sizes = [row.counts.cost_usd if is_paid else float(row.counts.calls) for row in rows]
    longest = max(sizes) or 1.0
    grid = Table.grid(Column(), Column(), Column(justify="right"), padding=(0, 1))
    for row, size in zip(rows, sizes, strict=True):
        label = " ".join(getattr(row, name) for name in DIMENSIONS if getattr(row, name))
        figure = f"${size:,.4f}" if is_paid else f"{size:,.0f} calls"
        grid.add_row(label, _BAR * round(_LONGEST_BAR * size / longest), figure)
    return grid
