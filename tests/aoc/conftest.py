"""Fixtures of the aoc bridge's tests."""

from pathlib import Path

import pytest

from tests.aoc.data import Data


@pytest.fixture
def data(tmp_path: Path) -> Data:
    """A data directory without puzzles and records."""
    return Data(tmp_path / "data")
