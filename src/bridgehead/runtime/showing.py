"""Showing: settings as a person sees them: each with its value and where that comes from, secrets masked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .findings import Finding
from .settings import Settings

if TYPE_CHECKING:
    from rich.table import Table

DEFAULT = "default"


def origin(name: str, settings: Settings, environment: Mapping[str, str]) -> str:
    """Tell where a setting has its value from."""
    if name not in settings.given:
        return DEFAULT
    from_file: frozenset[str] = getattr(environment, "from_file", frozenset())
    return ".env" if name in from_file else "the environment"


def finding(settings: Settings, environment: Mapping[str, str]) -> Finding:
    """Name what is set and where, and count the rest, in a line of a doctor's."""
    given = [
        f"{name}={value} (from {origin(name, settings, environment)})"
        for name, value in settings.summary()
        if name in settings.given
    ]
    others = len(settings.declared) - len(given)
    return Finding("settings", "right", ", ".join([*given, f"{others} at their defaults"]))


def table(settings: Settings, environment: Mapping[str, str]) -> Table:
    """Lay out all of them for a terminal."""
    from rich.markup import escape
    from rich.table import Column, Table

    values = dict(settings.summary())
    grid = Table("Variable", Column("Value", overflow="fold"), "From", "What it does")
    for setting in settings.declared:
        source = origin(setting.name, settings, environment)
        value = escape(values[setting.name] or setting.shown_default)
        shown = value if source == DEFAULT else f"[bold]{value}[/]"
        grid.add_row(setting.name, shown, source, escape(setting.about))
    return grid
