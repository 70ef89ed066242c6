"""Layout: which folders are served for which settings, and when a file is another one."""

import os
import sys
from pathlib import Path

import pytest

from bridgehead.aoc.files import layout
from bridgehead.aoc.files.layout import Folders, find_folders, identify
from bridgehead.aoc.settings import AocSettings


def folders_for(environment: dict[str, str], current: Path) -> Folders:
    return find_folders(AocSettings(environment), str(current))


def test_the_data_directory_has_both_folders_and_the_aliases(tmp_path: Path) -> None:
    assert folders_for({"AOC_DATA_DIR": str(tmp_path)}, Path("elsewhere")) == Folders(
        instructions=str(tmp_path / "instructions"),
        speeds=str(tmp_path / "speeds"),
        inputs=str(tmp_path / "inputs"),
        answers=str(tmp_path / "answers"),
        bench=str(tmp_path / "bench"),
        attempts=str(tmp_path / "attempts"),
        aliases=str(tmp_path / "aliases.json"),
        required=str(tmp_path),
    )


@pytest.mark.parametrize("name", ["instructions", "speeds"])
def test_the_current_directory_serves_where_it_has_one_of_the_folders(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()

    assert folders_for({}, tmp_path).speeds == str(tmp_path / "speeds")


def test_else_the_users_data_directory_serves(tmp_path: Path) -> None:
    place = folders_for({}, tmp_path)

    assert not place.speeds.startswith(str(tmp_path))
    assert Path(place.speeds).parts[-3:] == ("bridgehead", "aoc", "speeds")


def test_the_default_year_may_have_its_files_at_the_top_or_in_a_folder_of_its_own(tmp_path: Path) -> None:
    environment = {"AOC_DATA_DIR": str(tmp_path)}
    at_top = folders_for(environment, tmp_path)
    (tmp_path / "2025").mkdir()
    apart = folders_for(environment, tmp_path)

    assert at_top.instructions == str(tmp_path / "instructions")
    assert apart.instructions == str(tmp_path / "2025" / "instructions")
    assert apart.aliases == str(tmp_path / "aliases.json")


def test_any_other_year_lives_in_its_own_folder_also_before_that_exists(tmp_path: Path) -> None:
    place = folders_for({"AOC_DATA_DIR": str(tmp_path), "AOC_YEAR": "2024"}, tmp_path)

    assert place.instructions == str(tmp_path / "2024" / "instructions")
    assert place.speeds == str(tmp_path / "2024" / "speeds")


def test_the_anchor_of_a_folder_is_the_nearest_one_that_exists(tmp_path: Path) -> None:
    wanted = tmp_path / "data" / "speeds"
    before = layout.find_anchor(str(wanted))
    wanted.mkdir(parents=True)
    after = layout.find_anchor(str(wanted))
    required = layout.find_anchor(str(tmp_path / "gone" / "speeds"), str(tmp_path / "gone"))

    assert (before.path, after.path) == (str(tmp_path), str(wanted))
    assert before.is_there
    assert after.is_there
    assert not required.is_there


def test_an_empty_mount_point_is_not_taken_for_the_disk(tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev

    assert not layout.Anchor(str(tmp_path), frozenset({device})).is_there
    assert layout.Anchor(str(tmp_path), frozenset({device + 1})).is_there  # mounted again elsewhere
    assert not layout.Anchor(str(tmp_path / "gone")).is_there


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is a mount that every Linux has")
def test_an_anchor_knows_the_devices_below_its_disk() -> None:
    assert layout.find_anchor("/proc/self").below >= {Path("/").stat().st_dev}
    assert layout.find_anchor("/").below == frozenset()


def test_a_replacement_of_the_same_size_and_time_is_another_file(tmp_path: Path) -> None:
    path, other = tmp_path / "day01.json", tmp_path / "other"
    path.write_bytes(b"one")
    before, status = identify(str(path)), path.stat()
    other.write_bytes(b"two")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)

    assert identify(str(path)) != before


def test_a_file_that_was_written_to_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "day01.json"
    path.write_bytes(b"one")
    before = identify(str(path))
    with path.open("ab") as file:
        file.write(b"more")

    assert identify(str(path)) != before


def test_a_folder_that_goes_while_it_is_looked_at_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "isdir", lambda _path: True)

    assert not layout.find_anchor(str(tmp_path / "gone")).is_there
