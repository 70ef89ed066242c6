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
    """Two models on one day, the slower one with a name that Markdown and CSV must quote."""
    times = {"fast": (990, 995, 1000, 1005, 1010), "slow|model": (2500, 2525, 2550, 2575, 2600)}
    data.put_speeds(1, [entry(llm, time) for llm, of_model in times.items() for time in of_model])
    return data
