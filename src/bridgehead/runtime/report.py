"""Report: what a bridge tells a person of its far side, for the host's page: facts, charts and tables.

A manifest's `report` gives one when somebody looks. Texts are plain: whoever shows them escapes them.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


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


class Table(Struct, frozen=True):
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
    tables: tuple[Table, ...] = ()
