"""Backups: bounded by count and bytes, private, and the last version of a file is the last to go."""

from pathlib import Path

import pytest

from bridgehead.bitburner.changes.backups import Backups
from bridgehead.bitburner.errors import BackupFailed
from bridgehead.runtime.errors import NotFound
from tests.bitburner.playing import settings


class Ticking:
    """A clock that goes on by a second whenever it is looked at."""

    def __init__(self) -> None:
        self._now = 1_000_000.0

    def now(self) -> float:
        self._now += 1
        return self._now

    def monotonic(self) -> float:
        return self._now


def made(folder: Path, **environment: str) -> Backups:
    return Backups(settings(folder, BITBURNER_BACKUP_DIR=str(folder / "kept"), **environment), Ticking())


def names(backups: Backups, filename: str | None = None) -> list[str]:
    return [one.filename for one in backups.list_versions("home", filename)]


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    backups = made(tmp_path)
    version = backups.store("home", "a.js", "é\r\n\0", "write_file")

    assert backups.load("home", "a.js", version) == (version, "é\r\n\0")
    assert backups.load("home", "a.js", None) == (version, "é\r\n\0")


def test_files_of_the_same_name_on_other_servers_are_apart(tmp_path: Path) -> None:
    backups = made(tmp_path)
    version = backups.store("home", "a.js", "1", "write_file")

    with pytest.raises(NotFound):
        backups.load("n00dles", "a.js", version)


def test_the_oldest_go_first_but_a_last_version_stays_longest(tmp_path: Path) -> None:
    backups = made(tmp_path, BITBURNER_BACKUP_MAX_FILES="4")
    backups.store("home", "once.js", "1", "write_file")
    for number in range(10):
        backups.store("home", "often.js", str(number), "write_file")

    assert names(backups) == ["often.js", "often.js", "often.js", "once.js"]
    assert backups.load("home", "often.js", None)[1] == "9"


def test_where_nothing_else_is_left_last_versions_go_too(tmp_path: Path) -> None:
    backups = made(tmp_path, BITBURNER_BACKUP_MAX_FILES="3")
    for number in range(6):
        backups.store("home", f"f{number}.js", "x", "delete_file")

    assert names(backups) == ["f5.js", "f4.js", "f3.js"]


def test_bytes_are_bounded(tmp_path: Path) -> None:
    backups = made(tmp_path, BITBURNER_BACKUP_MAX_BYTES="2000")
    for number in range(10):
        backups.store("home", f"f{number}.js", "x" * 500, "write_file")

    kept = list((tmp_path / "kept").iterdir())
    assert 0 < sum(path.stat().st_size for path in kept) <= 2000
    assert names(backups)[0] == "f9.js"


def test_a_content_over_the_bound_cannot_be_kept(tmp_path: Path) -> None:
    with pytest.raises(BackupFailed, match="BITBURNER_BACKUP_MAX_BYTES"):
        made(tmp_path, BITBURNER_BACKUP_MAX_BYTES="100").store("home", "a.js", "x" * 100, "write_file")


def test_kept_contents_are_private(tmp_path: Path) -> None:
    made(tmp_path).store("home", "a.js", "1", "write_file")

    (kept,) = (tmp_path / "kept").iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    assert kept.parent.stat().st_mode & 0o077 == 0


def test_what_is_not_a_backup_is_passed_over(tmp_path: Path) -> None:
    backups = made(tmp_path)
    version = backups.store("home", "a.js", "1", "write_file")
    (tmp_path / "kept" / "9999999999999-x-0000000000000000.json").write_text("no backup", encoding="utf-8")

    assert [one.version for one in backups.list_versions("home", None)] == [version]


def test_a_long_name_with_any_letters_is_kept(tmp_path: Path) -> None:
    backups = made(tmp_path)
    name = "日" * 290 + "/ü.js"

    assert backups.load("home", name, backups.store("home", name, "1", "write_file"))[1] == "1"
