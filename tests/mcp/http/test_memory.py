"""Memory: what the system tells of it."""

import subprocess
import sys

import pytest

from bridgehead.mcp.http import memory

SIZE = 64 * 1024 * 1024
# A process of its own: what other tests left behind may be freed at any moment.
GROW = f"""
import os
from bridgehead.mcp.http import memory
before = memory.resident_bytes()
held = os.urandom({SIZE})
print(memory.resident_bytes() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it this way")
def test_the_memory_of_the_process_grows_with_what_it_holds() -> None:
    grown = subprocess.run([sys.executable, "-c", GROW], check=True, capture_output=True, text=True)
    assert int(grown.stdout) > SIZE // 2


def test_the_memory_that_may_be_used_is_at_least_that_which_is() -> None:
    assert memory.resident_bytes() < memory.available_bytes() <= memory.UNLIMITED
