"""Places: state goes where the setting or the system says, closed to others, or an error says what to do."""

import sys
from pathlib import Path

import pytest

from bridgehead.runtime import directories
from bridgehead.runtime.errors import StorageError

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems keep such folders elsewhere")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_state_is_kept_where_the_setting_says(tmp_path: Path) -> None:
    settings = directories.StateSettings({"BRIDGEHEAD_STATE_DIR": str(tmp_path / "deep" / "state")})

    folder = directories.open_state(settings, "usage")

    assert folder == tmp_path / "deep" / "state" / "usage"
    assert folder.is_dir()


@on_linux
def test_state_is_kept_in_the_users_state_directory_where_nothing_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    folder = directories.open_state(directories.StateSettings({}), "usage")

    assert folder == tmp_path / "bridgehead" / "usage"
    assert folder.is_dir()


@on_linux
def test_the_users_data_has_its_folder_which_is_not_made_by_asking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    folder = directories.user_data("puzzles")

    assert folder == tmp_path / "bridgehead" / "puzzles"
    assert not folder.parent.exists()


def test_a_new_folder_is_closed_to_others(tmp_path: Path) -> None:
    assert mode(directories.make_private(tmp_path / "a" / "b")) == 0o700


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o750)
    (folder / "file").touch()

    assert directories.make_private(folder) == folder

    assert mode(folder) == 0o750
    assert (folder / "file").exists()


@pytest.mark.parametrize("below", ["", "further"])
def test_a_folder_that_cannot_be_made_is_an_error_that_says_what_to_do(tmp_path: Path, below: str) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")

    with pytest.raises(StorageError) as caught:
        directories.make_private(file / below)

    assert str(file) in caught.value.message
    assert "BRIDGEHEAD_STATE_DIR" in caught.value.next_step
    assert file.read_text() == "in the way"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_every_folder_that_is_made_on_the_way_is_private(tmp_path: Path) -> None:
    before = mode(tmp_path)
    directories.make_private(tmp_path / "state" / "bridgehead" / "bitburner")

    assert mode(tmp_path) == before
    for below in ("state", "state/bridgehead", "state/bridgehead/bitburner"):
        assert mode(tmp_path / below) == 0o700
