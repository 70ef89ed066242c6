"""Bridges: what a release says of each bridge, and what it asks of it to see that it works.

What a setting is for, its default and whether it is a secret are not repeated here: the bridge declares them.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

import bridgehead
from bridgehead.runtime.settings import Setting, Settings

FormType = Literal["string", "number", "boolean", "directory"]


@dataclass(frozen=True)
class Field:
    """A setting that a person is asked for when a bundle is installed."""

    variable: str
    title: str
    type: FormType = "string"
    is_required: bool = False


@dataclass(frozen=True)
class Call:
    """A call that a bridge answers without its real far side, and a piece of the answer."""

    tool: str
    expected: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Released:
    """One bridge as it is offered to people."""

    name: str
    title: str
    description: str
    fields: tuple[Field, ...]
    call: Call


ALL = (
    Released(
        "aoc",
        "Advent of Code",
        "Advent of Code puzzle texts and solve-speed records on disk, with rankings.",
        (
            Field("AOC_DATA_DIR", "Data folder", "directory", is_required=True),
            Field("AOC_YEAR", "Year of the event", "number"),
        ),
        Call("fetch_instruction", "Lanterns", {"day": 1}),
    ),
    Released(
        "bitburner",
        "Bitburner",
        "Scripts and files of a running game of Bitburner, through its Remote API.",
        (
            Field("BITBURNER_LISTEN", "Where the game dials in"),
            Field("BITBURNER_READ_ONLY", "Read only", "boolean"),
            Field("BITBURNER_CONFIRM_DELETE", "Ask before a delete", "boolean"),
        ),
        Call("connection_status", "No game is connected"),
    ),
    Released(
        "mercury",
        "Mercury",
        "The Mercury diffusion LLM as tools: chat, streams, code completion, edits.",
        (
            Field("MERCURY_API_KEY", "API key", is_required=True),
            Field("MERCURY_MODEL", "Model"),
            Field("MERCURY_BUDGET_USD", "Budget a day in US dollars"),
        ),
        Call("mercury_list_models", "mercury"),
    ),
)


def offered() -> tuple[Released, ...]:
    """Give the bridges that the distribution has."""
    there = {package.name for package in pkgutil.iter_modules(bridgehead.__path__)}
    return tuple(bridge for bridge in ALL if bridge.name in there)


def settings(bridge: Released) -> dict[str, Setting[Any]]:
    """Give the settings of a bridge by their variables."""
    module = import_module(f"bridgehead.{bridge.name}.settings")
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Settings) and value.__module__ == module.__name__
    ]
    declared = max(found, key=lambda one: len(one.declared)).declared
    return {setting.name: setting for setting in declared}
