"""Bridge: what the aoc bridge tells a host of its files."""

from pathlib import Path

import pytest

from bridgehead.aoc.bridge import far_side, manifest
from bridgehead.aoc.settings import AocSettings
from bridgehead.aoc.workspace import open_workspace
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.settings import SettingError
from tests.aoc.data import Data


def test_a_host_gets_the_bridge_and_may_run_it_in_many_processes(data: Data) -> None:
    settings = manifest.settings(data.environment())

    assert "record_speed" in manifest.make(settings, Metrics()).tools
    assert settings.configured == {"AOC_DATA_DIR", "BRIDGEHEAD_STATE_DIR"}
    assert manifest.single_process == ""


def test_a_wrong_setting_is_told_to_the_host() -> None:
    with pytest.raises(SettingError, match="AOC_YEAR"):
        manifest.settings({"AOC_YEAR": "soon"})


def test_the_files_are_there_with_puzzles_or_records(data: Data, tmp_path: Path) -> None:
    data.puzzle(1, "one")
    data.puzzle(2, "two")
    there = far_side(open_workspace(AocSettings(data.environment())))
    empty = tmp_path / "empty"
    empty.mkdir()
    gone = far_side(open_workspace(AocSettings({"AOC_DATA_DIR": str(empty)})))

    assert (there.is_up, there.detail) == (True, "2 days with instructions.")
    assert not gone.is_up
    assert gone.detail.startswith("There is no folder with puzzles or records")
    assert not far_side(None).is_up
