"""Lazy imports: a module is loaded when something of it is used, and only then."""

import asyncio
import subprocess
import sys

from bridgehead.mcp import lazy_imports
from tests.support.waiting import PATIENCE

PROGRAM = """
import sys
from bridgehead.mcp.lazy_imports import asyncio
assert "asyncio" not in sys.modules, "loaded when it was named"
asyncio.Event
assert "asyncio" in sys.modules
"""


def test_a_module_is_loaded_when_something_of_it_is_used() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=PATIENCE, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_found_is_the_real_thing() -> None:
    assert lazy_imports.asyncio.Event is asyncio.Event
