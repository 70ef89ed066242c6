"""History: bounded by count and bytes, replaced contents and last writes apart, private."""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bridgehead.bitburner.changes import history as history_module
from bridgehead.bitburner.changes.history import MAX_BYTES, History, Version
from bridgehead.bitburner.errors import BackupFailed
from bridgehead.runtime import durable
from bridgehead.runtime.errors import NotFound, StorageError
from tests.bitburner.playing import settings, versions_of
from tests.support.clock import Clock
from tests.support.open_files import files_open_in
from tests.support.posix import is_private

OPEN: list[History] = []


@pytest.fixture(autouse=True)
def close_histories() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def made(folder: Path, max_bytes: int = MAX_BYTES, **environment: str) -> History:
    chosen = settings(folder, BITBURNER_BACKUP_DIR=str(folder / "kept"), **environment)
    history = History(chosen, Clock(1_000_000.0, step=1.0))
    history.max_bytes = max_bytes
    OPEN.append(history)
    return history


def keep(history: History, filename: str, content: str | None, **more: Any) -> str:
    return history.record(Version("home", filename, history._clock.now(), "write_file", content, **more))  # noqa: SLF001


def names(backups: History, filename: str | None = None) -> list[str]:
    return [one.filename for one in backups.list_entries("home", filename)]


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    backups = made(tmp_path)
    version = keep(backups, "a.js", "é\r\n\0")

    assert backups.load("home", "a.js", version).content == "é\r\n\0"
    assert backups.find_undo("home", "a.js", None).name == version


def test_the_current_content_is_kept_once_however_often_it_is_recorded(tmp_path: Path) -> None:
    backups = made(tmp_path)
    first = keep(backups, "a.js", "1")

    same = backups.record(Version("home", "a.js", 2_000_000.0, "undo", "1"), unless_kept=True)
    other = backups.record(Version("home", "a.js", 3_000_000.0, "undo", "2"), unless_kept=True)

    assert same == first
    assert other != first
    assert backups.load("home", "a.js", other).content == "2"
    assert names(backups) == ["a.js", "a.js"]


def test_files_of_the_same_name_on_other_servers_are_apart(tmp_path: Path) -> None:
    backups = made(tmp_path)
    version = keep(backups, "a.js", "1")

    with pytest.raises(NotFound):
        backups.load("n00dles", "a.js", version)


def test_replaced_contents_and_last_writes_do_not_push_each_other_out(tmp_path: Path) -> None:
    backups = made(tmp_path, BITBURNER_BACKUP_MAX_FILES="3")
    keep(backups, "precious.txt", "the player's")
    for number in range(6):
        keep(backups, f"f{number}.js", "x", kind="written")

    assert [entry.filename for entry in backups.drop_oldest()] == ["f0.js", "f1.js", "f2.js"]
    assert backups.drop_oldest() == []
    assert names(backups) == ["f5.js", "f4.js", "f3.js", "precious.txt"]
    assert backups.find_undo("home", "precious.txt", "the agent's").content == "the player's"


def test_what_a_file_held_before_its_last_write_counts_as_replaced(tmp_path: Path) -> None:
    backups = made(tmp_path, BITBURNER_BACKUP_MAX_FILES="2")
    keep(backups, "once.js", "1", kind="written")
    for number in range(5):
        keep(backups, "often.js", str(number), kind="written")

    dropped = backups.drop_oldest()
    assert [entry.filename for entry in dropped] == ["often.js", "often.js"]
    assert [one.content for one in versions_of(backups, "often.js")] == ["4", "3", "2"]
    assert names(backups)[-1] == "once.js"


def test_a_dropped_last_write_is_not_followed_by_an_older_one(tmp_path: Path) -> None:
    backups = made(tmp_path, BITBURNER_BACKUP_MAX_FILES="1")
    for name, content in (("a.js", "1"), ("a.js", "2"), ("b.js", "1")):
        keep(backups, name, content, kind="written")

    assert [entry.filename for entry in backups.drop_oldest()] == ["a.js"]
    assert [entry.filename for entry in backups.list_last_writes()] == ["b.js"]
    assert backups.find_last_write("home", "a.js") is None


def test_bytes_are_bounded(tmp_path: Path) -> None:
    backups = made(tmp_path, max_bytes=2000)
    for number in range(10):
        keep(backups, f"f{number}.js", "x" * 500)
    backups.drop_oldest()

    kept = list((tmp_path / "kept").glob("*.json"))
    assert 0 < sum(path.stat().st_size for path in kept) <= 2000
    assert names(backups)[0] == "f9.js"


def test_a_content_over_the_bound_cannot_be_kept(tmp_path: Path) -> None:
    with pytest.raises(BackupFailed, match="all backups may take 100"):
        keep(made(tmp_path, max_bytes=100), "a.js", "x" * 100)


def test_kept_contents_are_private(tmp_path: Path) -> None:
    keep(made(tmp_path), "a.js", "1")

    kept = list((tmp_path / "kept").iterdir())
    assert len(kept) > 1  # the version, and the index
    assert all(map(is_private, (*kept, tmp_path / "kept")))


def test_what_is_not_a_backup_is_passed_over(tmp_path: Path) -> None:
    backups = made(tmp_path)
    version = keep(backups, "a.js", "1")
    (tmp_path / "kept" / "9999999999999-x-0000000000000000.json").write_text("no backup", encoding="utf-8")

    assert [one.name for one in backups.list_entries("home", None)] == [version]


def test_a_long_name_with_any_letters_is_kept(tmp_path: Path) -> None:
    backups = made(tmp_path)
    name = "日" * 290 + "/ü.js"

    assert backups.load("home", name, keep(backups, name, "1")).content == "1"


def test_undoing_again_goes_further_back_and_a_restore_is_no_step_forward(tmp_path: Path) -> None:
    history = made(tmp_path)
    first, second = keep(history, "a.js", "1"), keep(history, "a.js", "2", kind="written")
    keep(history, "a.js", "3", kind="written")

    assert history.find_undo("home", "a.js", "3").name == second
    keep(history, "a.js", "2", kind="written", restored=second)
    assert history.find_undo("home", "a.js", "2").name == first
    keep(history, "a.js", "1", kind="written", restored=first)
    with pytest.raises(NotFound):
        history.find_undo("home", "a.js", "1")


def test_a_clock_that_is_set_back_does_not_reorder_the_versions_of_a_file(tmp_path: Path) -> None:
    history = made(tmp_path)
    keep(history, "a.js", "1")
    history.record(Version("home", "a.js", 5.0, "write_file", "2"))

    assert [one.content for one in versions_of(history, "a.js")] == ["2", "1"]


def test_many_versions_of_one_millisecond_keep_their_order(tmp_path: Path) -> None:
    history = made(tmp_path)
    for number in range(40):
        history.record(Version("home", "a.js", 1000.0, "write_file", str(number)))

    assert [one.content for one in versions_of(history, "a.js")] == [
        str(number) for number in reversed(range(40))
    ]


def test_a_version_of_0_1_is_read_as_one_that_was_found(tmp_path: Path) -> None:
    history = made(tmp_path)
    name = keep(history, "a.js", "1")
    path = history.folder / f"{name}.json"
    old = {"server": "home", "filename": "a.js", "at": 5.0, "because": "write_file", "content": "old"}
    path.write_text(json.dumps(old), encoding="utf-8")

    history.close()
    history = made(tmp_path)  # as at the next start

    (version,) = versions_of(history, "a.js")
    assert (version.content, version.kind) == ("old", "found")
    assert history.list_last_writes() == []


def test_the_last_write_of_each_file_is_told_unless_something_else_was_found_since(tmp_path: Path) -> None:
    history = made(tmp_path)
    keep(history, "a.js", "1", kind="written")
    keep(history, "b.js", "1", kind="written")
    keep(history, "b.js", "2", kind="found")
    keep(history, "c.js", None, kind="deleted")

    assert {one.filename for one in history.list_last_writes()} == {"a.js", "c.js"}


def test_the_newest_version_is_that_of_the_file_that_is_asked_for(tmp_path: Path) -> None:
    history = made(tmp_path)
    for content in ("1", "2"):
        keep(history, "a.js", content)
    keep(history, "b.js", "3")
    newest = history.find_newest("home", "a.js")

    assert newest is not None
    assert (newest.filename, newest.content) == ("a.js", "2")
    assert history.find_newest("home", "c.js") is None
    assert history.find_newest("n00dles", "a.js") is None


def test_a_content_is_kept_once_if_the_newest_version_of_the_same_file_holds_it(tmp_path: Path) -> None:
    history = made(tmp_path)
    first, second = keep(history, "a.js", "1"), keep(history, "a.js", "2")
    keep(history, "b.js", "3")

    def keep_current(server: str, filename: str, content: str) -> str:
        return history.record(Version(server, filename, 9.0, "write_file", content), unless_kept=True)

    assert keep_current("home", "a.js", "2") == second
    others = [keep_current("n00dles", "a.js", "2"), keep_current("home", "b.js", "2")]
    again = keep_current("home", "a.js", "1")  # it is kept, but not as the newest
    assert len({first, second, again, *others}) == 5


def test_a_newest_version_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    history = made(tmp_path)
    older, newer = keep(history, "a.js", "1"), keep(history, "a.js", "2")
    (history.folder / f"{newer}.json").write_text("{", encoding="utf-8")

    found = Version("home", "a.js", 9.0, "write_file", "1")
    assert history.record(found, unless_kept=True) == older
    newest = history.find_newest("home", "a.js")
    assert newest is not None
    assert newest.name == older


def test_the_newest_version_is_recalled_by_its_content_until_it_is_gone(tmp_path: Path) -> None:
    history = made(tmp_path, BITBURNER_BACKUP_MAX_FILES="2")

    def recall(filename: str, content: str) -> str | None:
        return history.recall(Version("home", filename, 9.0, "write_file", content))

    first = keep(history, "a.js", "1", kind="written")
    assert (recall("a.js", "1"), recall("a.js", "2"), recall("b.js", "1")) == (first, None, None)
    second = keep(history, "a.js", "2", kind="written")
    assert (recall("a.js", "1"), recall("a.js", "2")) == (None, second)
    history.discard(second)
    assert recall("a.js", "2") is None
    keep(history, "a.js", "3", kind="written")
    for filename in ("b.js", "c.js"):
        keep(history, filename, "1", kind="written")
    assert [one.filename for one in history.drop_oldest()] == ["a.js"]
    assert recall("a.js", "3") is None
    assert recall("c.js", "1") is not None
    keep(history, "c.js", None, kind="deleted")
    assert recall("c.js", "") is None


def test_versions_of_the_last_minute_are_flushed_again_by_the_next_process(tmp_path: Path) -> None:
    history = made(tmp_path)
    version = Version("home", "a.js", 1_000_000.0, "write_file", "1", "written")
    name = history.record_next(version, None)
    history.index.close()  # killed
    for later, is_flushed in ((30.0, False), (120.0, True)):
        chosen = settings(tmp_path, BITBURNER_BACKUP_DIR=str(tmp_path / "kept"))
        following = History(chosen, Clock(1_000_000.0 + later))
        assert following.list_entries("home", "a.js")
        assert (name not in following.unflushed) == is_flushed
        following.index.close()


def test_only_the_version_that_is_named_is_loaded_and_never_a_delete(tmp_path: Path) -> None:
    history = made(tmp_path)
    kept, deleted = keep(history, "a.js", "1"), keep(history, "a.js", None, kind="deleted")

    assert history.load("home", "a.js", kept).content == "1"
    for name in (deleted, "0000000000000-0-0"):
        with pytest.raises(NotFound, match=f"No version {name} of a.js on home is kept"):
            history.load("home", "a.js", name)


def kept_files(history: History) -> list[str]:
    return sorted(path.name for path in history.folder.iterdir() if ".index." not in path.name)


def test_a_version_says_its_size_and_when_it_was_kept(tmp_path: Path) -> None:
    history = made(tmp_path)
    keep(history, "a.js", "é")
    keep(history, "b.js", None, kind="deleted")
    deleted, written = history.list_entries("home", None)

    assert (written.bytes, deleted.bytes) == (2, 0)
    assert written.kept_at == "1970-01-12T13:46:41.000Z"
    assert (written.kind, deleted.kind) == ("found", "deleted")


def test_without_a_folder_of_its_own_it_is_in_the_state_directory(tmp_path: Path) -> None:
    with closing(History(settings(tmp_path), Clock(step=1.0))) as history:
        keep(history, "a.js", "1")

        assert history.folder == tmp_path / "bitburner" / "backups"
        assert len(kept_files(history)) == 1


def test_a_version_that_is_discarded_is_gone_and_once_more_does_no_harm(tmp_path: Path) -> None:
    history = made(tmp_path)
    first, second = keep(history, "a.js", "1"), keep(history, "a.js", "2")
    for _ in range(2):
        history.discard(second)

    assert [version.name for version in versions_of(history, "a.js")] == [first]
    assert kept_files(history) == [f"{first}.json"]


def test_a_version_may_be_as_large_as_all_of_them_and_no_larger(tmp_path: Path) -> None:
    history = made(tmp_path)
    keep(history, "a.js", "x" * 1000)
    size = (history.folder / kept_files(history)[0]).stat().st_size

    keep(made(tmp_path / "as", max_bytes=size), "a.js", "x" * 1000)
    with pytest.raises(BackupFailed, match=f"it takes {size} bytes"):
        keep(made(tmp_path / "over", max_bytes=size - 1), "a.js", "x" * 1000)


def test_exactly_as_many_versions_are_kept_as_there_is_room_for(tmp_path: Path) -> None:
    history = made(tmp_path, BITBURNER_BACKUP_MAX_FILES="3")
    for number in range(5):
        keep(history, "a.js", str(number))
    history.drop_oldest()
    assert [version.content for version in versions_of(history, "a.js")] == ["4", "3", "2"]

    size = (history.folder / kept_files(history)[0]).stat().st_size
    by_bytes = made(tmp_path / "bytes", max_bytes=3 * size)
    for number in range(5):
        keep(by_bytes, "a.js", str(number))
    by_bytes.drop_oldest()
    assert [version.content for version in versions_of(by_bytes, "a.js")] == ["4", "3", "2"]


def test_versions_are_named_by_their_time_and_never_before_the_newest(tmp_path: Path) -> None:
    history = made(tmp_path)
    times = [2000.5, 1000.0, 1000.0, 2000.5, 2001.0]
    names = [history.record(Version("home", "a.js", at, "write_file", str(at))) for at in times]

    assert names == sorted(names)
    assert [name.partition("-")[0] for name in names] == [
        "0000002000500",
        *["0000002000500"] * 3,
        "0000002001000",
    ]


def test_what_another_process_named_in_the_same_moment_does_not_reorder_a_file(tmp_path: Path) -> None:
    history = made(tmp_path)
    first = history.record(Version("home", "a.js", 2000.0, "write_file", "1"))
    moment, _, key = first.split("-")
    newest = f"{moment}-ffffffff{'f' * 8}-{key}"
    (history.folder / f"{first}.json").rename(history.folder / f"{newest}.json")
    history.close()
    history = made(tmp_path)  # as at the next start

    second = history.record(Version("home", "a.js", 2000.0, "write_file", "2"))

    assert second.startswith("0000002000001-")
    assert [version.content for version in versions_of(history, "a.js")] == ["2", "1"]


def test_what_a_killed_writer_left_is_swept_and_strange_files_are_passed_over(tmp_path: Path) -> None:
    history = made(tmp_path)
    keep(history, "a.js", "1")
    folder = history.folder
    for name in (".bridgehead-0.tmp", ".hidden.json", "notes.txt", "0-0-0.json"):
        (folder / name).write_text("{")
    os.utime(folder / ".bridgehead-0.tmp", (0, 0))
    history.close()
    history = made(tmp_path)  # as at the next start
    keep(history, "a.js", "2")

    assert [version.content for version in versions_of(history, "a.js")] == ["2", "1"]
    assert names(history) == ["a.js", "a.js"]
    assert ".bridgehead-0.tmp" not in kept_files(history)
    assert {".hidden.json", "notes.txt"} <= set(kept_files(history))


def test_pruning_goes_on_where_another_process_was_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = made(tmp_path, BITBURNER_BACKUP_MAX_FILES="1")
    keep(history, "a.js", "1")
    unlink = Path.unlink

    def gone(path: Path, *, missing_ok: bool = False) -> None:
        unlink(path, missing_ok=True)
        unlink(path, missing_ok=missing_ok)

    keep(history, "a.js", "2")
    monkeypatch.setattr(Path, "unlink", gone)
    history.drop_oldest()

    assert [version.content for version in versions_of(history, "a.js")] == ["2"]


def test_closing_flushes_what_is_not_flushed_and_nothing_is_kept_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(durable, "flush_file", flushed.append)
    history = made(tmp_path)
    name = history.record_next(Version("home", "a.js", 1_000_000.0, "write_file", "1"), None)
    history.close()

    assert flushed == [history.folder / f"{name}.json"]
    assert not history.unflushed
    assert not files_open_in(tmp_path)
    with pytest.raises(StorageError, match="The bridge has ended"):
        history.list_entries("home", "a.js")
    with pytest.raises(BackupFailed, match="The bridge has ended"):
        keep(history, "a.js", "2")
    assert history.drop_oldest() == []
    history.close()  # once more does no harm


def test_a_folder_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    history = made(tmp_path)
    keep(history, "a.js", "1")
    shutil.rmtree(history.folder)
    kept = keep(history, "a.js", "2")

    assert [version.name for version in versions_of(history, "a.js")] == [kept]
    history.close()
    assert not files_open_in(tmp_path)


def test_an_index_that_cannot_be_used_is_named_and_nothing_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(history_module, "VersionIndex", fail)
    history = made(tmp_path)

    with pytest.raises(BackupFailed, match=f"The index of versions in {history.folder} cannot be used"):
        keep(history, "a.js", "1")


def test_a_content_that_is_kept_and_not_flushed_is_flushed_before_it_is_relied_on(tmp_path: Path) -> None:
    history = made(tmp_path)
    version = Version("home", "a.js", 1_000_000.0, "write_file", "1")
    name = history.record_next(version, None)
    assert list(history.unflushed) == [name]

    assert history.record(version, unless_kept=True) == name
    assert not history.unflushed
    assert keep(history, "a.js", "1") != name


def test_the_newest_versions_of_as_many_files_are_recalled_as_there_is_room_for(tmp_path: Path) -> None:
    history = made(tmp_path, BITBURNER_BACKUP_MAX_FILES="2")

    def recall(filename: str) -> str | None:
        return history.recall(Version("home", filename, 9.0, "write_file", "1"))

    first, second = keep(history, "a.js", "1"), keep(history, "b.js", "1")
    assert (recall("a.js"), recall("b.js")) == (first, second)
    third = keep(history, "c.js", "1")
    assert (recall("a.js"), recall("b.js"), recall("c.js")) == (None, second, third)


def test_versions_beyond_the_limit_are_announced_dropped_and_not_recalled(tmp_path: Path) -> None:
    history = made(tmp_path, max_bytes=1500)
    excesses = []
    for filename, content in (("a.js", "x" * 1000), ("b.js", "y" * 1000)):
        keep(history, filename, content)
        excesses.append(history.has_excess)
    dropped = history.drop_oldest()

    assert [*excesses, history.has_excess] == [False, True, False]
    assert [entry.filename for entry in dropped] == ["a.js"]
    assert history.recall(Version("home", "a.js", 9.0, "write_file", "x" * 1000)) is None
    assert len(kept_files(history)) == 1


def test_a_content_is_held_if_some_readable_version_of_the_file_has_it(tmp_path: Path) -> None:
    history = made(tmp_path)
    first = keep(history, "a.js", "1")
    keep(history, "a.js", "2")
    assert [history.holds("home", "a.js", content) for content in "123"] == [True, True, False]
    assert not history.holds("home", "b.js", "1")

    (history.folder / f"{first}.json").write_text("{", encoding="utf-8")
    assert [history.holds("home", "a.js", content) for content in "12"] == [False, True]


def test_what_was_written_last_is_found_and_nothing_after_a_delete(tmp_path: Path) -> None:
    history = made(tmp_path)
    name = keep(history, "a.js", "1", kind="written")
    found = history.find_last_write("home", "a.js")
    assert found is not None
    assert (found.name, found.content) == (name, "1")

    keep(history, "a.js", None, kind="deleted")
    assert history.find_last_write("home", "a.js") is None
    assert history.find_last_write("home", "b.js") is None
