"""Fixtures of the tests of aoc's files."""

import pytest

from bridgehead.aoc.files import journal
from tests.aoc.data import Data, entry


@pytest.fixture
def large(data: Data) -> Data:
    """A folder with a day that is too large to be written anew for each record."""
    count = journal.JOURNAL_FROM_BYTES // 60
    data.put_speeds(1, [entry("old", number) for number in range(count)])
    return data
