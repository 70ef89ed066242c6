"""Doctor: looks at the folders and files of an event, for one screen."""

# ruff: noqa: PTH112 - one way to write a path in this package

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

from bridgehead.runtime.findings import Finding, settings_finding

from .bridge import open_event
from .files.check import check
from .settings import AocSettings

_SHOWN = 3


async def examine(environment: Mapping[str, str]) -> list[Finding]:
    """Look at everything."""
    settings = AocSettings(environment)
    event = open_event(settings)
    report = await asyncio.to_thread(check, event.folders)
    count = len(event.days())
    found = [
        settings_finding(settings, environment),
        _folder(
            "puzzles",
            event.folders.instructions,
            f"{count} day{'' if count == 1 else 's'} of {settings.year}",
        ),
        _folder("records", event.folders.speeds, "kept"),
    ]
    if not report.problems:
        found.append(Finding("files", "right", f"{report.files} read, all whole"))
    found += [
        Finding("files", "wrong", f"{problem.path}: {problem.text}", "bridgehead aoc check")
        for problem in report.problems[:_SHOWN]
    ]
    return found


def _folder(what: str, folder: str, detail: str) -> Finding:
    if os.path.isdir(folder):
        return Finding(what, "right", f"{detail}, in {folder}")
    return Finding(what, "note", f"{folder} is not there yet", "Set AOC_DATA_DIR, or put files there.")
