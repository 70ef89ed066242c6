"""Skipped: the one list of tests that do not run on Windows, each with its reason (skipped.toml)."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).with_name("skipped.toml")


class Entry(NamedTuple):
    """Tests with one reason."""

    reason: str
    tests: tuple[str, ...]
    """Folders, files, tests, or tests with their parameters, as pytest names them."""
    fixtures: tuple[str, ...]
    """What these fixtures need cannot be had there, so neither can the tests that ask for them."""


def entries() -> list[Entry]:
    """Read the list."""
    found = tomllib.loads(LIST.read_text(encoding="utf-8"))["skip"]
    return [
        Entry(one["reason"], tuple(one.get("tests", ())), tuple(one.get("fixtures", ()))) for one in found
    ]


def reason_for(test: str, fixtures: list[str]) -> str | None:
    """Return why a test does not run on Windows; None where it does."""
    names = set(_names(test))
    for entry in entries_once():
        if names.intersection(entry.tests) or not set(fixtures).isdisjoint(entry.fixtures):
            return entry.reason
    return None


def _names(test: str) -> Iterator[str]:
    """Give every name that covers a test: its own, without parameters, its file's, its folders'."""
    yield test
    name = test.partition("[")[0]
    yield name
    file = name.partition("::")[0]
    yield file
    yield from (f"{folder.as_posix()}/" for folder in Path(file).parents)


_cache: list[Entry] = []


def entries_once() -> list[Entry]:
    """Read the list when it is first asked for."""
    if not _cache:
        _cache.extend(entries())
    return _cache
