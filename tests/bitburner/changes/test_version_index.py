"""VersionIndex: the folder decides, whatever became of the index; many versions cost a write no more."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridgehead.bitburner.changes.history import History, Version
from bridgehead.bitburner.changes.version_index import FILE, Entry, VersionIndex
from tests.bitburner.playing import settings, versions_of
from tests.support.clock import Clock

OPEN: list[History] = []


@pytest.fixture(autouse=True)
def close_histories() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def opened(folder: Path) -> History:
    chosen = settings(folder, BITBURNER_BACKUP_DIR=str(folder / "kept"))
    OPEN.append(History(chosen, Clock(1_000_000.0, step=1.0)))
    return OPEN[-1]


def keep(history: History, filename: str, content: str, kind: str = "written") -> str:
    return history.record(Version("home", filename, 1_000_000.0, "write_file", content, kind))  # type: ignore[arg-type]


def all_names(history: History) -> list[str]:
    return [entry.name for entry in history.list_entries("home", None)]


@pytest.mark.parametrize("damage", ["missing", "no database", "cut"])
def test_an_index_that_is_gone_or_damaged_is_made_again_from_the_versions(
    tmp_path: Path, damage: str
) -> None:
    history = opened(tmp_path)
    kept = [keep(history, "a.js", "1"), keep(history, "a.js", "2"), keep(history, "b.js", "3", "found")]
    history.close()
    index = tmp_path / "kept" / FILE
    if damage == "missing":
        index.unlink()
    elif damage == "cut":
        index.write_bytes(index.read_bytes()[:5000])
    else:
        index.write_text("something else" * 500, encoding="utf-8")

    again = opened(tmp_path)
    assert all_names(again) == sorted(kept, reverse=True)
    assert [entry.name for entry in again.list_last_writes()] == [kept[1]]
    assert again.find_undo("home", "a.js", "2").content == "1"


def test_an_index_that_is_deleted_while_it_is_open_is_made_again(tmp_path: Path) -> None:
    history = opened(tmp_path)
    keep(history, "a.js", "1")
    for file in (tmp_path / "kept").glob(f"{FILE}*"):
        file.unlink()
    keep(history, "a.js", "2")

    assert [version.content for version in versions_of(history, "a.js")] == ["2", "1"]


def test_a_version_whose_writer_was_killed_before_it_was_indexed_is_found_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = opened(tmp_path)
    keep(history, "a.js", "1")
    with monkeypatch.context() as patch:

        def killed(_: VersionIndex, __: Entry) -> None:
            raise KeyboardInterrupt

        patch.setattr(VersionIndex, "add", killed)
        with pytest.raises(KeyboardInterrupt):
            keep(history, "a.js", "2")
    history.close()

    assert [version.content for version in versions_of(opened(tmp_path), "a.js")] == ["2", "1"]


def test_a_version_that_someone_deleted_is_forgotten_at_the_next_start(tmp_path: Path) -> None:
    history = opened(tmp_path)
    first, second = keep(history, "a.js", "1"), keep(history, "a.js", "2")
    history.close()
    (tmp_path / "kept" / f"{second}.json").unlink()

    assert all_names(opened(tmp_path)) == [first]


def test_two_processes_see_each_others_versions_at_once(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    keep(one, "a.js", "1")
    keep(other, "a.js", "2")

    assert [version.content for version in versions_of(one, "a.js")] == ["2", "1"]
    assert all_names(one) == all_names(other)


def test_a_refused_write_leaves_the_last_write_as_it_was(tmp_path: Path) -> None:
    history = opened(tmp_path)
    first = keep(history, "a.js", "1")
    history.discard(keep(history, "a.js", "2"))

    assert [entry.name for entry in history.list_last_writes()] == [first]


def count_steps(history: History, filename: str) -> int:
    """Return the steps of SQLite's machine that one write takes."""
    connection: sqlite3.Connection = history.index._connection  # noqa: SLF001
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1

    connection.set_progress_handler(step, 1)
    keep(history, filename, "new")
    history.drop_oldest()
    connection.set_progress_handler(None, 0)
    return steps


def test_a_write_takes_no_more_work_with_many_versions(tmp_path: Path) -> None:
    history = opened(tmp_path)
    keep(history, "a.js", "1")
    few = count_steps(history, "b.js")
    rows = [
        Entry(f"{number:013d}-0-{number}", "home", f"{number % 700}.js", 1.0, "x", "written", "", "d", 1, 1)
        for number in range(5000)
    ]
    for row in rows[:2000]:
        history.index.add(row)

    # The trees of the index are deeper, and that is all.
    assert count_steps(history, "c.js") < 2 * few
