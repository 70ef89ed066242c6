"""Fixtures of the benchmark's tests: invented puzzles, and what surrounds a run."""

import os
from pathlib import Path

import pytest

from bridgehead.aoc.bench.agent_run import BenchContext
from bridgehead.aoc.bench.demo import make_puzzles
from bridgehead.aoc.sandbox.isolation import find_bubblewrap
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.workspace import open_workspace
from tests.support.waiting import PATIENCE


@pytest.fixture
def context(tmp_path: Path) -> BenchContext:
    """A data folder with three invented days."""
    data = tmp_path / "data"
    make_puzzles(data, [1, 2, 3])
    settings = {"AOC_DATA_DIR": str(data), "BRIDGEHEAD_STATE_DIR": str(tmp_path / "state")}
    (tmp_path / "bench").mkdir()
    return BenchContext(
        workspace=open_workspace(AocSettings(settings)),
        folder=tmp_path / "bench",
        environment=os.environ,
        hidden=(),
        bubblewrap=find_bubblewrap(),
        seconds=PATIENCE,
    )
