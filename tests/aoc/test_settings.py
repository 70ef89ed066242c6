"""Settings: which files are served, and what a bad setting is told."""

import os

import pytest

from bridgehead.aoc.settings import AocSettings
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
        ("AOC_LOCK_WAIT_MS", "0", "a whole number from 1 to 600000"),
        ("AOC_DATA_DIR", "missing", "an existing folder"),
    ],
)
def test_a_bad_setting_is_named_with_what_would_be_right(name: str, value: str, right: str) -> None:
    with pytest.raises(SettingError) as refusal:
        AocSettings({name: value})

    assert name in str(refusal.value)
    assert right in str(refusal.value)


def test_a_file_in_the_place_of_a_folder_stops_the_start(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    file = data.folder / "file"
    file.write_text("x")
    monkeypatch.setenv("AOC_DATA_DIR", str(file))

    done = bridgehead("aoc")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"bridgehead aoc: AOC_DATA_DIR is '{file}': expected an existing folder.\n"
