"""Settings: which files are served, and what a bad setting is told."""

import os
from pathlib import Path

import pytest

from bridgehead.aoc.files.layout import Folders, find_folders
from bridgehead.aoc.settings import AocSettings
from bridgehead.runtime.settings import SettingError
from tests.aoc.data import Data
from tests.test_cli import bridgehead


def found(environment: dict[str, str], current: Path) -> Folders:
    return find_folders(AocSettings(environment), str(current))


def test_the_data_directory_has_both_folders_and_the_aliases(tmp_path: Path) -> None:
    assert found({"AOC_DATA_DIR": str(tmp_path)}, Path("elsewhere")) == Folders(
        str(tmp_path / "instructions"), str(tmp_path / "speeds"), str(tmp_path / "aliases.json")
    )


@pytest.mark.parametrize("name", ["instructions", "speeds"])
def test_the_current_directory_serves_where_it_has_one_of_the_folders(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()

    assert found({}, tmp_path).speeds == str(tmp_path / "speeds")


def test_else_the_users_data_directory_serves(tmp_path: Path) -> None:
    place = found({}, tmp_path)

    assert not place.speeds.startswith(str(tmp_path))
    assert Path(place.speeds).parts[-3:] == ("bridgehead", "aoc", "speeds")


def test_a_year_with_a_folder_of_its_own_lives_there(tmp_path: Path) -> None:
    (tmp_path / "2024").mkdir()
    environment = {"AOC_DATA_DIR": str(tmp_path)}

    mixed, apart = found(environment, tmp_path), found({**environment, "AOC_YEAR": "2024"}, tmp_path)

    assert mixed.instructions == str(tmp_path / "instructions")
    assert apart == Folders(
        str(tmp_path / "2024" / "instructions"),
        str(tmp_path / "2024" / "speeds"),
        str(tmp_path / "aliases.json"),
    )


def test_each_folder_can_be_named(tmp_path: Path) -> None:
    for name in ("texts", "times", "2025"):
        (tmp_path / name).mkdir()
    environment = {
        "AOC_DATA_DIR": str(tmp_path),
        "AOC_INSTRUCTIONS_DIR": str(tmp_path / "texts"),
        "AOC_SPEEDS_DIR": str(tmp_path / "times"),
    }

    place = found(environment, tmp_path)

    assert (place.instructions, place.speeds) == (str(tmp_path / "texts"), str(tmp_path / "times"))


def test_a_folder_may_begin_with_the_home_directory() -> None:
    assert AocSettings({"AOC_DATA_DIR": "~"}).data_dir == os.path.expanduser("~")  # noqa: PTH111 - as a shell has it


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("AOC_YEAR", "2014", "a whole number from 2015 to 2099"),
        ("AOC_YEAR", "this", "a whole number from 2015 to 2099"),
        ("AOC_LOCK_WAIT_MS", "0", "a whole number from 1 to 600000"),
        ("AOC_DATA_DIR", "missing", "an existing folder"),
        ("AOC_INSTRUCTIONS_DIR", "missing", "an existing folder"),
        ("AOC_SPEEDS_DIR", "missing", "an existing folder"),
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
    monkeypatch.setenv("AOC_SPEEDS_DIR", str(file))

    done = bridgehead("aoc")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"bridgehead aoc: AOC_SPEEDS_DIR is {str(file)!r}: expected an existing folder.\n"
