"""Report: the dashboard's facts about the game: connection, servers, and the files on home."""

from __future__ import annotations

from contextlib import suppress

from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.findings import Fact, Report, ReportTable

from .errors import UnsupportedByGame
from .game import timestamps
from .game.remote import Metadata
from .session import Session

HOME = "home"
MAX_FILES = 25
_KIB = 1024


async def report(session: Session) -> Report:
    """Describe the game for the dashboard; one that has just disconnected counts as not answering."""
    connection, remote = session.connection, session.remote
    facts = [Fact("Game", "connected" if connection.link is not None else "not connected")]
    files: list[Metadata] = []
    names: list[str] = []
    if connection.link is not None:
        try:
            listed = await remote.list_names(HOME)
            with suppress(UnsupportedByGame):  # before 3.0
                files = await remote.list_metadata(HOME)
            names = listed
            details = [Fact("Files on home", f"{len(names):,}")]
            with suppress(UnsupportedByGame):  # before 2.6
                details.append(Fact("Servers", f"{len(await remote.list_servers()):,}"))
            facts += [*details, Fact("Game version", await remote.detect_generation())]
        except BridgeError:
            facts.append(Fact("Files", "the game did not answer"))
    if connection.since is not None:
        facts.append(Fact("Since", f"{_format_minute(connection.since)} UTC"))
    facts += [
        Fact("Address", connection.address),
        Fact("Requests waiting", str(0 if connection.link is None else connection.link.pending)),
        Fact("Other processes sharing it", str(len(session.relay.guests))),
        Fact("Reconnects", _total(connection.counters.reconnects.values)),
        Fact("Timeouts", _total(connection.counters.timeouts.values)),
        Fact("Write tools", "not offered" if session.settings.read_only else "offered"),
    ]
    return Report(facts=tuple(facts), tables=(_tabulate(names, files),) if names else ())


def _tabulate(names: list[str], files: list[Metadata]) -> ReportTable:
    """List the files, most recently changed first; by name if the game does not report times (before 3.0)."""
    newest = sorted(files, key=lambda file: -file.mtime)[:MAX_FILES]
    rows: list[tuple[str, ...]] = [(name,) for name in sorted(names)[:MAX_FILES]]
    columns: tuple[str, ...] = ("File",)
    if newest:
        rows = [(file.filename, _format_minute(file.mtime / 1000)) for file in newest]
        columns = ("File", "Changed (UTC)")
    if any(file.size is not None for file in newest):  # the oldest games with times report no sizes
        rows = [(*row, _size(file.size)) for row, file in zip(rows, newest, strict=True)]
        columns = (*columns, "Size")
    shown = f", {MAX_FILES} of {len(names):,}" if len(names) > MAX_FILES else ""
    return ReportTable(f"Files on home{shown}", columns, tuple(rows), frozenset({"Size"}))


def _total(values: dict[tuple[str, ...], float]) -> str:
    return f"{sum(values.values()):,.0f}"


def _format_minute(seconds: float) -> str:
    """Format a time for people: in UTC, to the minute."""
    return timestamps.format_utc(seconds)[:16].replace("T", " ")


def _size(count: int | None) -> str:
    if count is None:
        return "–"
    return f"{count} B" if count < _KIB else f"{count / _KIB:.1f} KiB"
