"""Memory: what the system tells of it."""

import os
import sys

import pytest

from bridgehead.mcp.http import memory


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it this way")
def test_the_memory_of_the_process_grows_with_what_it_holds() -> None:
    before = memory.resident_bytes()
    held = os.urandom(64 * 1024 * 1024)
    assert memory.resident_bytes() - before > len(held) // 2


def test_the_memory_that_may_be_used_is_at_least_that_which_is() -> None:
    assert memory.resident_bytes() < memory.available_bytes() <= memory.UNLIMITED
