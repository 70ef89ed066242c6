"""Report: what the host's page shows of the game: whether it is connected, its servers, the files on home."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.findings import Fact, Report, ReportTable

from ..errors import UnsupportedByGame
from . import timestamps

if TYPE_CHECKING:
    from ..session import Session
    from .remote import Metadata, Remote

HOME = "home"
MOST_FILES = 100
_KIB = 1024


async def report(session: Session) -> Report:
    """Tell how things stand with the game; one that has gone meanwhile is simply not there."""
    facts = [Fact("Game", "connected" if session.connection.link is not None else "not connected")]
    files: list[Metadata] = []
    names: list[str] = []
    if session.connection.link is not None:
        try:
            names, files = await _list_files(session.remote)
            facts += await _describe_game(session, len(names))
        except BridgeError:
            facts.append(Fact("Files", "the game did not answer"))
    return Report(facts=(*facts, *_describe_link(session)), tables=(_tabulate(names, files),))


async def _list_files(remote: Remote) -> tuple[list[str], list[Metadata]]:
    names = await remote.list_names(HOME)
    try:
        return names, await remote.list_metadata(HOME)
    except UnsupportedByGame:
        return names, []


async def _describe_game(session: Session, files: int) -> list[Fact]:
    facts = [Fact("Files on home", f"{files:,}")]
    with suppress(UnsupportedByGame):  # before 2.6
        facts.append(Fact("Servers", f"{len(await session.remote.list_servers()):,}"))
    facts.append(Fact("Generation", await session.remote.detect_generation()))
    return facts


def _describe_link(session: Session) -> list[Fact]:
    connection, counters = session.connection, session.connection.counters
    pending = 0 if connection.link is None else connection.link.pending
    since = [] if connection.since is None else [Fact("Since", timestamps.format_utc(connection.since))]
    return [
        *since,
        Fact("Address", connection.address),
        Fact("Exchanges pending", str(pending)),
        Fact("Other processes that share it", str(session.relay.guests)),
        Fact("Reconnects", _total(counters.reconnects.values)),
        Fact("Timeouts", _total(counters.timeouts.values)),
        Fact("Tools that write", "not offered" if session.settings.read_only else "offered"),
    ]


def _total(values: dict[tuple[str, ...], float]) -> str:
    return f"{sum(values.values()):,.0f}"


def _tabulate(names: list[str], files: list[Metadata]) -> ReportTable:
    """List the files that were changed last, or by name where the game does not tell when."""
    if files:
        newest = sorted(files, key=lambda one: -one.mtime)[:MOST_FILES]
        rows = [(one.filename, _size(one.size), timestamps.format_utc(one.mtime / 1000)) for one in newest]
    else:
        rows = [(name, "–", "–") for name in sorted(names)[:MOST_FILES]]
    shown = f", {MOST_FILES} of {len(names)}" if len(names) > MOST_FILES else ""
    return ReportTable(f"Files on home{shown}", ("File", "Size", "Changed"), tuple(rows), frozenset({"Size"}))


def _size(count: int | None) -> str:
    if count is None:
        return "–"
    return f"{count} B" if count < _KIB else f"{count / _KIB:.1f} KiB"
