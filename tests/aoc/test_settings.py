"""Settings: which files are served, and what a bad setting is told."""

import os
import sys
from pathlib import Path

import pytest

from bridgehead.aoc.settings import AocSettings, secret_paths
from bridgehead.runtime.settings import SettingError
from tests.aoc.data import Data
from tests.test_cli import bridgehead


def test_a_folder_may_begin_with_the_home_directory() -> None:
    assert AocSettings({"AOC_DATA_DIR": "~"}).data_dir == os.path.expanduser("~")  # noqa: PTH111 - as a shell has it


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("AOC_YEAR", "2014", "a whole number from 2015 to 2099"),
        ("AOC_YEAR", "this", "a whole number from 2015 to 2099"),
        ("AOC_RECORD_KEYS", "speedms2", "one of speedMs, speed_ms"),
        ("AOC_DATA_DIR", "missing", "an existing folder"),
    ],
)
def test_a_bad_setting_is_named_with_what_would_be_right(name: str, value: str, right: str) -> None:
    with pytest.raises(SettingError) as refusal:
        AocSettings({name: value})

    assert name in str(refusal.value)
    assert right in str(refusal.value)


@pytest.mark.skipif(sys.platform != "linux", reason="the variables of XDG")
def test_secrets_are_found_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    named = {
        "BRIDGEHEAD_STATE_DIR": str(tmp_path / "own"),
        "AOC_GRADE_KEY_FILE": str(tmp_path / "key"),
        "AOC_SESSION_FILE": str(tmp_path / "cookie"),
    }

    assert secret_paths(AocSettings({})) == (
        tmp_path / "state" / "bridgehead",
        tmp_path / "config" / "bridgehead" / "aoc" / "session",
    )
    assert secret_paths(AocSettings(named)) == (tmp_path / "own", tmp_path / "key", tmp_path / "cookie")


def test_a_file_in_the_place_of_a_folder_stops_the_start(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    file = data.folder / "file"
    file.write_text("x")
    monkeypatch.setenv("AOC_DATA_DIR", str(file))

    done = bridgehead("aoc")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"bridgehead aoc: AOC_DATA_DIR is '{file}': expected an existing folder.\n"
