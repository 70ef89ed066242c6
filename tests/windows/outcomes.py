"""Outcomes: a pytest plugin that writes down each test as it begins and ends, for who may have to end it.

A process that hangs or dies takes its report along; the lines of this file stay.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

_LAST_BYTES = 64


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcomes", type=Path, help="the file to write outcomes to, one line of JSON each")
    parser.addoption("--done", type=Path, help="a file with the names of tests that are not to run again")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--outcomes")
    if path is not None:
        config.pluginmanager.register(Writer(path), "outcomes writer")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    path = config.getoption("--done")
    done = set(path.read_text(encoding="utf-8").splitlines()) if path is not None else set()
    items[:] = [item for item in items if item.nodeid not in done]


class Writer:
    """Appends a line for every event."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write(event="began", test=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A failure of a fixture counts as one of its test; what has passed is known after the call.
        if report.when == "call" or report.outcome != "passed":
            text = "" if report.outcome == "passed" else str(report.longrepr)
            self._write(event=report.outcome, test=report.nodeid, seconds=report.duration, text=text)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome == "failed":
            self._write(event="failed", test=report.nodeid, seconds=0.0, text=str(report.longrepr))

    def pytest_sessionfinish(self) -> None:
        self._write(event="finished", test="")

    def _write(self, **event: Any) -> None:
        with self._path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(event) + "\n")


def is_finished(path: Path) -> bool:
    """Tell whether all tests of a process are over."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_BYTES))
        return b'{"event": "finished"' in file.read()
    return False


def read(path: Path) -> tuple[dict[str, dict[str, Any]], str | None]:
    """Return what came of each test, and the last that began where the process did not come to its end."""
    found: dict[str, dict[str, Any]] = {}
    running: str | None = None
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for line in lines:
        event = json.loads(line)
        if event["event"] == "began":
            running = event["test"]
            continue
        if event["event"] == "finished":
            return found, None
        if event["test"] not in found or found[event["test"]]["event"] != "failed":
            found[event["test"]] = event
    return found, running
