"""Audit command: `bridgehead audit` finds calls in the audit: who called what, when, and how it ended."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta

import msgspec

from bridgehead.runtime import directories
from bridgehead.runtime.command_line import Parser, number, write_csv
from bridgehead.runtime.errors import InvalidArgument
from bridgehead.runtime.timing import Clock, SystemClock

from ..settings import HostSettings
from .stores import PostgresAudit, SqliteAudit
from .trail import OUTCOMES, Line, Query

_EXAMPLES = """\
examples:
  bridgehead audit
  bridgehead audit --caller bob --outcome failed --since yesterday --until today
  bridgehead audit --tool 'write_*' --since 12h --csv
"""
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_MAX_DIGITS = 5
_HEADS = ("TIME (UTC)", "CALLER", "TOOL", "OUTCOME", "REASON", "MS", "BYTES", "USD", "ARGUMENTS", "REQUEST")


def main(arguments: list[str], environment: Mapping[str, str], clock: Clock | None = None) -> int:
    """Print the matching lines, newest first; return the exit status."""
    options = parser().parse_args(arguments)
    now = (clock or SystemClock()).now()
    query = Query(
        options.caller or "",
        options.tool or "",
        options.outcome or "",
        read_time(options.since, now, "--since"),
        read_time(options.until, now, "--until"),
        options.limit,
    )
    lines = _find(HostSettings(environment), query)
    if options.json:
        shown = [{**msgspec.to_builtins(line), "at": _time(line.at)} for line in lines]
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(shown)).decode() + "\n")
    elif options.csv:
        fields = [name for name in Line.__struct_fields__ if name != "key"]
        sys.stdout.write(write_csv(fields, ([getattr(line, name) for name in fields] for line in lines)))
    elif not lines:
        sys.stdout.write("No call matches.\n")
    else:
        rows = [_HEADS, *map(_row, lines)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            sys.stdout.write("  ".join(cells).rstrip() + "\n")
    return 0


def parser() -> Parser:
    """Return the parser of the command line."""
    command = Parser(
        prog="bridgehead audit",
        description="Find tool calls: who called what, when, and how it ended.",
        epilog=_EXAMPLES,
    )
    command.add_argument("--caller", metavar="NAME", help="calls of this token or user")
    command.add_argument("--tool", metavar="NAME", help="calls of this tool; * stands for any letters")
    outcomes = (*OUTCOMES, "failed")
    about = "how they ended; failed is error, cancelled or refused"
    command.add_argument("--outcome", choices=outcomes, metavar="|".join(outcomes), help=about)
    about = "from this time on (UTC): 2026-11-18, 2026-11-18T09:30, today, yesterday, or 30m, 12h, 7d ago"
    command.add_argument("--since", metavar="TIME", help=about)
    command.add_argument("--until", metavar="TIME", help="before this time")
    command.add_argument(
        "--limit", type=number(int, 1, 100_000), default=100, metavar="N", help="how many (default: 100)"
    )
    command.add_argument("--json", action="store_true", help="as JSON")
    command.add_argument("--csv", action="store_true", help="as CSV")
    return command


def read_time(text: str | None, now: float, what: str) -> float | None:
    """Return a time in seconds since 1970; None for none. Raises InvalidArgument."""
    if not text:
        return None
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    count, unit = text[:-1], _UNITS.get(text[-1])
    if unit and count.isascii() and count.isdigit() and len(count) <= _MAX_DIGITS:
        return now - timedelta(**{unit: int(count)}).total_seconds()
    if text in {"today", "yesterday"}:
        return (today - timedelta(days=text == "yesterday")).timestamp()
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InvalidArgument(
            f"{what} is {text!r}, which is no time.",
            next_step="Write 2026-11-18, 2026-11-18T09:30, today, yesterday, or 30m, 12h, 7d.",
        ) from None


def _find(settings: HostSettings, query: Query) -> list[Line]:
    if settings.database_url is None:
        with closing(SqliteAudit(directories.open_state(settings, "host"))) as file:
            return file.find(query)
    from bridgehead.runtime.stores import postgres  # lazy: PostgreSQL, 14 ms

    with postgres.opened_in_thread(settings.database_url) as database:
        store = PostgresAudit()
        store.database = database
        return database.wait_for(store.search(query))


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def _row(line: Line) -> tuple[str, ...]:
    cells = (
        f"{datetime.fromtimestamp(line.at, UTC):%Y-%m-%d %H:%M:%S}",
        line.client,
        line.tool or "(not known)",
        line.outcome,
        line.reason,
        f"{line.ms:.0f}",
        "" if line.bytes is None else str(line.bytes),
        "" if line.cost_usd is None else f"{line.cost_usd:.6f}",
        line.arguments,
        line.request,
    )
    # A client chooses its request ids and names of tools, and a terminal would act on control characters.
    return tuple(cell if cell.isprintable() else repr(cell)[1:-1] for cell in cells)
