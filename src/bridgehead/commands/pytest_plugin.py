"""The pytest plugin: `pytest --bridgehead server.py` runs `bridgehead check` after the tests."""

import os
from typing import Any


def pytest_addoption(parser: Any) -> None:
    """Add the option."""
    about = "check a bridge (its name, file or module) after the tests; may be repeated"
    parser.addoption("--bridgehead", action="append", default=[], metavar="BRIDGE", help=about)


def pytest_sessionfinish(session: Any) -> None:
    """Check, and fail the run if something is wrong."""
    targets = session.config.getoption("--bridgehead")
    if targets and not hasattr(session.config, "workerinput"):
        from .check import failures  # lazy: the whole check, 200 ms

        for line in failures(targets, os.environ):
            session.exitstatus = 1
            session.config.get_terminal_writer().line(f"bridgehead check: {line}", red=True)
