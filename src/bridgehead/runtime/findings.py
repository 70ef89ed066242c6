"""Findings: the results of a doctor's checks, settings with their origin, and the report of a bridge.

The host's page shows the report. All texts are plain: the code that shows them escapes them.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from .settings import Settings

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

Verdict = Literal["right", "note", "wrong"]

_MARKS = {"right": "[green]✓[/]", "note": "[yellow]•[/]", "wrong": "[red]✗[/]"}
_SIGNS = {"right": "✓", "note": "•", "wrong": "✗"}
_DEFAULT = "default"
_OTHERS = 0o077
"""Permission bits of group and others."""
_WORD = re.compile(r"(?:`[^`]*`|\S)+")
"""A word, or several within backticks."""
_LIST_PART = re.compile(r"[^,]*,|[^,]+")
_PATH_PART = re.compile(r"[^/\\]*[/\\]|[^/\\]+")


class Finding(Struct, frozen=True):
    """The result of one check."""

    what: str
    verdict: Verdict
    text: str
    advice: str = ""
    """The next step."""


def table(findings: Iterable[Finding]) -> Table:
    """Lay findings out for a terminal."""
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    for finding in findings:
        # Readers look for the next step: it is bold, and the fact before it is dim.
        advice = [_Prose(f"→ {finding.advice}", "bold")] if finding.advice else []
        grid.add_row(
            _MARKS[finding.verdict], escape(finding.what), Group(_Prose(finding.text, "dim"), *advice)
        )
    return grid


def show_findings(console: Console, findings: Iterable[Finding]) -> None:
    """Print findings: laid out on a terminal; in a pipe one line each, so that no path is broken."""
    shown = list(findings)
    if console.is_terminal:
        console.print(table(shown))
        return
    width = max((len(finding.what) for finding in shown), default=0)
    for finding in shown:
        mark = _SIGNS[finding.verdict]
        lines = [f"{mark} {finding.what:{width}} {' '.join(finding.text.split())}"]
        lines += [f"  {'':{width}} → {' '.join(finding.advice.split())}"] if finding.advice else []
        console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


class _Prose:
    """A text for a terminal, broken between words; a command in backticks stays whole, to be copied."""

    def __init__(self, text: str | Text, style: str = "") -> None:
        self._text = text
        self._style = style

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.measure import Measurement
        from rich.text import Text

        return Measurement.get(console, options, Text(str(self._text)))

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.cells import cell_len
        from rich.text import Text

        text = Text(self._text, self._style) if isinstance(self._text, str) else self._text
        for paragraph in text.split("\n", allow_blank=True):
            plain, start, end = paragraph.plain, 0, 0
            for word in _WORD.finditer(plain):
                # A word that is wider than the terminal is broken too: a path between its folders, a list
                # between its values.
                parts: Iterable[re.Match[str]] = [word]
                if cell_len(word[0]) > options.max_width:
                    pattern = _LIST_PART if "," in word[0] else _PATH_PART
                    parts = pattern.finditer(plain, *word.span())
                for part in parts:
                    whole = word if part.start() == word.start() else part
                    if end and cell_len(plain[start : whole.end()]) > options.max_width:
                        yield _folded(paragraph[start:end])
                        start = part.start()
                    end = part.end()
            yield _folded(paragraph[start:end])


def _folded(line: Text) -> Text:
    line.overflow = "fold"
    return line


def folder_finding(what: str, folder: Path) -> Finding:
    """Check that a folder can be written to, or made; nothing is made."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        return Finding(what, "wrong", f"{there} cannot be written to", "Choose another folder.")
    if there != folder:
        return Finding(what, "right", f"{folder}, made when it is first needed")
    mode = stat.S_IMODE(folder.stat().st_mode)
    if os.name != "nt" and mode & _OTHERS:
        advice = f"Run `chmod 700 {folder}`."
        return Finding(what, "note", f"{folder} is readable by other users ({mode:o})", advice)
    return Finding(what, "right", str(folder))


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 1 if a check failed; notes do not count."""
    return int(any(finding.verdict == "wrong" for finding in findings))


def _origin(name: str, settings: Settings, environment: Mapping[str, str]) -> str:
    """Name the origin of a setting's value."""
    if name not in settings.configured:
        return _DEFAULT
    from_file: frozenset[str] = getattr(environment, "from_file", frozenset())
    return ".env" if name in from_file else "the environment"


def settings_finding(settings: Settings, environment: Mapping[str, str]) -> Finding:
    """List the settings that are set, with their origin, and count the rest."""
    configured = [
        f"{name}={value} (from {_origin(name, settings, environment)})"
        for name, value in settings.summary()
        if name in settings.configured
    ]
    others = len(settings.declared) - len(configured)
    if others:
        configured.append(f"{others} at {'its default' if others == 1 else 'their defaults'}")
    return Finding("settings", "right", ", ".join(configured) or "it has none")


def settings_table(settings: Settings, environment: Mapping[str, str]) -> Table:
    """List all settings for a terminal, the common ones first: variable, value and origin, then what it does.

    Stacked rather than in columns: four columns on a narrow terminal would cut words.
    """
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    values = dict(settings.summary())
    grid = Table.grid()
    rank = {name: at for at, name in enumerate(settings.common)}
    for setting in sorted(settings.declared, key=lambda setting: rank.get(setting.name, len(rank))):
        source = _origin(setting.name, settings, environment)
        value = values[setting.name] or setting.shown_default
        shown = (value, "" if source == _DEFAULT else "bold")
        line = Text.assemble((setting.name, "cyan"), " = ", shown, (f" ({source})", "dim"))
        grid.add_row(_Prose(line))
        grid.add_row(Padding(_Prose(setting.about), (0, 0, 1, 4)))
    return grid


# --- a bridge's report for the host's page ---------------------------------------------------------------


class Fact(Struct, frozen=True):
    """A label and its value, such as `Files` and `61`."""

    label: str
    value: str


class ChartBar(Struct, frozen=True):
    """One bar or column: its length, and its value as text."""

    label: str
    value: float
    shown: str


class Chart(Struct, frozen=True):
    """Horizontal bars (a ranking) or vertical columns (days)."""

    title: str
    bars: tuple[ChartBar, ...]
    kind: Literal["bars", "columns"] = "bars"
    note: str = ""
    """How to read it."""


class ReportTable(Struct, frozen=True):
    """Rows of texts; columns of numbers are aligned to the right."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[str] = frozenset()
    """The columns that hold numbers."""


class Report(Struct, frozen=True):
    """The state of a far side. An overview shows the first facts only."""

    facts: tuple[Fact, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[ReportTable, ...] = ()
