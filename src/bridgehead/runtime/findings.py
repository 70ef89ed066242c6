"""Findings: what a doctor looked at, what it thinks of it, and what to do; settings with their origin.

Also what a bridge reports of its far side to the host's page. Texts are plain: who shows them escapes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from .settings import Settings

if TYPE_CHECKING:
    from rich.table import Table

Verdict = Literal["right", "note", "wrong"]

_MARKS = {"right": "[green]✓[/]", "note": "[yellow]•[/]", "wrong": "[red]✗[/]"}
_DEFAULT = "default"


class Finding(Struct, frozen=True):
    """One thing that was looked at."""

    what: str
    verdict: Verdict
    text: str
    advice: str = ""
    """What to do about it."""


def table(findings: Iterable[Finding]) -> Table:
    """Lay findings out for a terminal."""
    from rich.markup import escape
    from rich.table import Column, Table

    grid = Table.grid(Column(), Column(), Column(overflow="fold"), padding=(0, 1))
    for finding in findings:
        # What to do is what a reader looks for: it stands out, the fact before it does not.
        advice = f"\n[bold]→ {escape(finding.advice)}[/]" if finding.advice else ""
        what, text = escape(finding.what), f"[dim]{escape(finding.text)}[/]"
        grid.add_row(_MARKS[finding.verdict], what, text + advice)
    return grid


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 0 where nothing is wrong."""
    return int(any(finding.verdict == "wrong" for finding in findings))


def _origin(name: str, settings: Settings, environment: Mapping[str, str]) -> str:
    """Tell where a setting has its value from."""
    if name not in settings.given:
        return _DEFAULT
    from_file: frozenset[str] = getattr(environment, "from_file", frozenset())
    return ".env" if name in from_file else "the environment"


def settings_finding(settings: Settings, environment: Mapping[str, str]) -> Finding:
    """Name what is set and where, and count the rest, in a line of a doctor's."""
    given = [
        f"{name}={value} (from {_origin(name, settings, environment)})"
        for name, value in settings.summary()
        if name in settings.given
    ]
    others = len(settings.declared) - len(given)
    return Finding("settings", "right", ", ".join([*given, f"{others} at their defaults"]))


def settings_table(settings: Settings, environment: Mapping[str, str]) -> Table:
    """Lay out all of them for a terminal."""
    from rich.markup import escape
    from rich.table import Column, Table

    values = dict(settings.summary())
    grid = Table("Variable", Column("Value", overflow="fold"), "From", "What it does")
    for setting in settings.declared:
        source = _origin(setting.name, settings, environment)
        value = escape(values[setting.name] or setting.shown_default)
        shown = value if source == _DEFAULT else f"[bold]{value}[/]"
        grid.add_row(setting.name, shown, source, escape(setting.about))
    return grid


# --- what the host's page shows of a far side ------------------------------------------------------------


class Fact(Struct, frozen=True):
    """One thing that is so: a label and its value, such as `Files` and `61`."""

    label: str
    value: str


class ChartBar(Struct, frozen=True):
    """One bar or column: how long it is, and how its value is written."""

    label: str
    value: float
    shown: str


class Chart(Struct, frozen=True):
    """A picture: bars below each other (a ranking), or columns beside each other (days)."""

    title: str
    bars: tuple[ChartBar, ...]
    kind: Literal["bars", "columns"] = "bars"


class ReportTable(Struct, frozen=True):
    """Rows of texts. Columns that hold numbers are aligned so that they can be compared."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[str] = frozenset()
    """The columns that hold numbers."""


class Report(Struct, frozen=True):
    """How things stand with a far side. The first facts are the ones that an overview has room for."""

    facts: tuple[Fact, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[ReportTable, ...] = ()
