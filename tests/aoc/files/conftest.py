"""Fixtures of the tests of aoc's files."""

import pytest

from tests.aoc.data import Data, entry


@pytest.fixture
def large(data: Data) -> Data:
    """A folder with a day for which version 0.3 kept a journal."""
    data.put_speeds(1, [entry("old", number) for number in range(4000)])
    return data
