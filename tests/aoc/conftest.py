"""Fixtures of the aoc bridge's tests."""

from pathlib import Path

import pytest

from tests.aoc.data import Data, entry


@pytest.fixture
def data(tmp_path: Path) -> Data:
    """A data directory without puzzles and records."""
    return Data(tmp_path / "data")


@pytest.fixture
def filled(data: Data) -> Data:
    """Two models on one day, the slower one with two runs and a name that Markdown and CSV must quote."""
    data.put_speeds(1, [entry("fast", 1000), entry("slow|model", 2500), entry("slow|model", 2600)])
    return data
