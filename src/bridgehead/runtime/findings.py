"""Findings: what a doctor looked at, what it thinks of it, and what to do; one screen for a person."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from rich.table import Table

Verdict = Literal["right", "note", "wrong"]

_MARKS = {"right": "[green]✓[/]", "note": "[yellow]•[/]", "wrong": "[red]✗[/]"}


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
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    for finding in findings:
        advice = f"\n[dim]→ {escape(finding.advice)}[/]" if finding.advice else ""
        what, text = f"[bold]{escape(finding.what)}[/]", escape(finding.text)
        grid.add_row(_MARKS[finding.verdict], what, text + advice)
    return grid


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 0 where nothing is wrong."""
    return int(any(finding.verdict == "wrong" for finding in findings))
