"""Locking: one writer at a time, whatever happens to lock files, for every user of the folder."""

import errno
import json
import os
import stat
import threading
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bridgehead.aoc.files.layout import Anchor
from bridgehead.aoc.files.locking import LOCK_FILE, FolderLock
from bridgehead.runtime.errors import StorageError
from tests.aoc.data import SECONDS, Data, locked, new, open_day, times
from tests.aoc.files.other_user import record_as
from tests.support.posix import fcntl, is_root
from tests.support.waiting import PATIENCE


def test_removing_every_lock_file_while_many_record_loses_nothing(data: Data) -> None:
    files = [open_day(data) for _ in range(4)]  # each with a lock of its own, as processes have
    is_over = threading.Event()

    def remove_locks() -> None:
        while not is_over.is_set():
            for path in data.speeds.glob(".*lock*"):
                with suppress(PermissionError):  # Windows keeps one that somebody holds
                    path.unlink(missing_ok=True)

    def record(writer: int) -> None:
        for number in range(30):
            files[writer].append([new(writer * 100 + number)])

    remover = threading.Thread(target=remove_locks)
    remover.start()
    writers = [threading.Thread(target=record, args=(writer,)) for writer in range(4)]
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join()
    is_over.set()
    remover.join()

    assert sorted(times(data)) == sorted(writer * 100 + number for writer in range(4) for number in range(30))


@pytest.mark.skipif(not is_root, reason="only root can become two users")
def test_two_users_of_a_shared_folder_can_both_record(data: Data) -> None:
    open_day(data).append([new(1)])  # loads what another user may not be allowed to read
    with TemporaryDirectory() as parent:
        Path(parent).chmod(0o755)
        shared = Path(parent) / "shared"
        shared.mkdir()
        os.chown(shared, 0, 4242)
        shared.chmod(0o2775)

        assert [record_as(user, 4242, shared) for user in (4001, 4002, 4001)] == [0, 0, 0]

        file = shared / "day01.json"
        assert [e["speedMs"] for e in json.loads(file.read_bytes())["entries"]] == [4001, 4002, 4001]
        assert (file.stat().st_gid, stat.S_IMODE(file.stat().st_mode)) == (4242, 0o664)


def test_where_a_folder_cannot_be_locked_a_lock_file_that_everybody_can_open_is_used(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(descriptor: int, operation: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")  # as NFS has it
        real(descriptor, operation)

    real = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", cannot)
    files = [open_day(data) for _ in range(3)]
    threads = [
        threading.Thread(target=lambda file=file, n=n: [file.append([new(n * 10 + i)]) for i in range(10)])
        for n, file in enumerate(files)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(times(data)) == list(range(30))
    assert stat.S_IMODE((data.speeds / LOCK_FILE).stat().st_mode) == 0o666


def test_a_folder_of_the_same_name_on_the_mount_point_is_not_written_to(data: Data) -> None:
    data.speeds.mkdir()
    unmounted = Anchor(str(data.speeds), frozenset({data.speeds.stat().st_dev}))
    lock = FolderLock(str(data.speeds), SECONDS, unmounted)

    with pytest.raises(StorageError, match="Was its disk unmounted"), lock.held("day01.json"):
        pass


def test_a_folder_that_is_removed_and_made_again_while_a_writer_waits_is_locked_anew(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    data.speeds.mkdir()
    held = FolderLock(str(data.speeds), SECONDS)
    day = open_day(data)
    has_opened = threading.Event()
    lock_folder = FolderLock._lock_folder  # noqa: SLF001

    def lock(self: FolderLock, descriptor: int, what: str, deadline: float) -> bool:
        has_opened.set()
        return lock_folder(self, descriptor, what, deadline)

    waiting = threading.Thread(target=lambda: day.append([new(1)]))
    with held.held("day01.json"):
        monkeypatch.setattr(FolderLock, "_lock_folder", lock)
        waiting.start()
        assert has_opened.wait(PATIENCE)
        data.speeds.rename(data.folder / "moved")
        data.speeds.mkdir()
        with locked(data.speeds):  # whoever comes next holds the new folder
            time.sleep(0)
    waiting.join()

    assert times(data) == [1]
    assert list((data.folder / "moved").iterdir()) == []
