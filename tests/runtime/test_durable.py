"""Durable: the file holds the old or the new content, whole, whatever happens to its writer."""

import errno
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridgehead.runtime import durable
from tests.support.children import unmeasured
from tests.support.posix import fcntl
from tests.support.waiting import PATIENCE

OLD = b"the old content"
AN_HOUR = 3600.0

LIMITED = """
import resource, signal, sys
from pathlib import Path
from bridgehead.runtime import durable
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
if sys.argv[2] == "die":
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
try:
    durable.replace(Path(sys.argv[1]), b"x" * 5000)
except OSError as failure:
    print(failure.strerror)
"""

UNREADABLE = """
import os, stat
from pathlib import Path
from bridgehead.runtime import durable
if os.getuid() == 0:
    os.chown(".", 65534, 65534)
    os.setuid(65534)
os.chmod(".", stat.S_IWUSR | stat.S_IXUSR)
try:
    os.listdir(".")
except PermissionError:
    durable.replace(Path("file"), b"new")
"""


def run(program: str, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=unmeasured(),
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(OLD)
    return path


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("data", [b"", b"new", os.urandom(3_000_000)], ids=["nothing", "little", "much"])
def test_new_content_takes_the_place_of_the_old(file: Path, data: bytes) -> None:
    durable.replace(file, data)

    assert content(file.parent) == {"file": data}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done to the disk, in order; everything is really done."""
    done: list[str] = []
    fsync, replace, mkdir = os.fsync, os.replace, Path.mkdir

    def flush(descriptor: int) -> None:
        found = Path(f"/proc/self/fd/{descriptor}").readlink()
        done.append(f"flush {found.name if found.is_dir() else found.stat().st_size}")
        fsync(descriptor)

    def rename(old: Path, new: Path) -> None:
        done.append(f"rename to {new.name}")
        replace(old, new)

    def make(folder: Path, *, exist_ok: bool) -> None:
        done.append(f"make {folder.name}")
        mkdir(folder, exist_ok=exist_ok)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(os, "replace", rename)
    monkeypatch.setattr(Path, "mkdir", make)
    return done


def test_content_is_on_the_disk_before_its_name_and_its_name_before_the_return(
    file: Path, steps: list[str]
) -> None:
    durable.replace(file, b"1234567")

    assert steps == ["flush 7", "rename to file", f"flush {file.parent.name}"]


def test_flushing_can_be_left_for_later(file: Path, steps: list[str]) -> None:
    durable.replace(file, b"new", flushes=False)
    assert file.read_bytes() == b"new"
    assert steps == ["rename to file"]
    durable.flush_file(file)
    assert steps == ["rename to file", "flush 3"]


def test_a_new_folder_is_on_the_disk_in_the_folder_that_it_is_in(tmp_path: Path, steps: list[str]) -> None:
    durable.make_folder(tmp_path / "a" / "b")

    assert steps == ["make a", f"flush {tmp_path.name}", "make b", "flush a"]


def test_a_folder_that_another_process_makes_meanwhile_is_as_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_dir, looks = Path.is_dir, iter([False])
    monkeypatch.setattr(Path, "is_dir", lambda path: next(looks, True) and is_dir(path))
    (tmp_path / "new").mkdir()

    durable.make_folder(tmp_path / "new")

    assert next(looks, None) is None


def test_nothing_stays_open(file: Path) -> None:
    gc.collect()  # so that nothing of an earlier test is closed meanwhile
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        durable.replace(file, b"new")
        durable.flush_file(file)
    durable.make_folder(file.parent / "folder")

    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_first_failure_is_told_even_where_nothing_can_be_cleaned_up(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(temporary: Path, path: Path) -> None:
        temporary.unlink()
        raise OSError(f"no room for {path.name}")

    monkeypatch.setattr(os, "replace", fail)

    with pytest.raises(OSError, match="no room for file"):
        durable.replace(file, b"new")


def held_open(times: int, code: int) -> Callable[[Path, Path], None]:
    """Make a rename that finds its target open at first, as on Windows."""
    replace, left = os.replace, iter(range(times))

    def rename(temporary: Path, path: Path) -> None:
        if next(left, None) is None:
            return replace(temporary, path)
        failure = PermissionError(13, "Access is denied")
        failure.winerror = code  # type: ignore[attr-defined]  # only Windows has it
        raise failure

    return rename


@pytest.mark.parametrize("code", [5, 32])
def test_a_file_that_somebody_has_open_is_replaced_when_they_are_done(
    file: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(os, "replace", held_open(3, code))

    durable.replace(file, b"new")

    assert content(file.parent) == {"file": b"new"}


@pytest.mark.parametrize("code", [0, 5])
def test_a_file_that_never_becomes_free_is_a_failure_in_time_and_stays_as_it_was(
    file: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(durable, "_HELD_SECONDS", 0.05)
    monkeypatch.setattr(os, "replace", held_open(1_000_000, code))

    with pytest.raises(PermissionError):
        durable.replace(file, b"new")

    assert content(file.parent) == {"file": OLD}


@pytest.mark.parametrize("act", ["read_bytes", "unlink"])
def test_a_file_that_is_just_being_replaced_is_read_or_removed_when_that_is_done(
    file: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    real, left = getattr(Path, act), iter(range(3))

    def refused_at_first(path: Path, **options: Any) -> Any:
        if next(left, None) is None:
            return real(path, **options)
        failure = PermissionError(13, "Access is denied")
        failure.winerror = 32  # type: ignore[attr-defined]  # only Windows has it
        raise failure

    monkeypatch.setattr(Path, act, refused_at_first)

    if act == "read_bytes":
        assert durable.read(file) == OLD
    else:
        durable.remove(file)
        assert not file.exists()


@pytest.mark.parametrize("can", [True, False], ids=["a disk", "a network drive"])
def test_on_macos_content_is_flushed_out_of_the_drives_cache_where_that_can_be_asked(
    file: Path, monkeypatch: pytest.MonkeyPatch, *, can: bool
) -> None:
    asked: list[str] = []

    def control(_descriptor: int, command: int) -> None:
        asked.append(f"control {command}")
        if not can:
            raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", control)
    monkeypatch.setattr(os, "fsync", lambda _descriptor: asked.append("fsync"))

    durable.replace(file, b"new")

    once = ["control 51"] if can else ["control 51", "fsync"]
    assert asked == [*once, *once]  # the file, and its folder


def test_a_file_that_was_not_there_is_made(tmp_path: Path) -> None:
    durable.replace(tmp_path / "new", b"it")

    assert content(tmp_path) == {"new": b"it"}


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)

    durable.replace(path, b"it")

    assert path.read_bytes() == b"it"


def test_a_file_is_private_unless_another_mode_is_asked_for(tmp_path: Path) -> None:
    durable.replace(tmp_path / "private", b"")
    durable.replace(tmp_path / "shown", b"", mode=0o400)

    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "shown").stat().st_mode & 0o777 == 0o400


def test_a_reader_keeps_the_content_that_it_has_opened(file: Path) -> None:
    with file.open("rb") as reader:
        durable.replace(file, b"new")

        assert reader.read() == OLD


def test_a_failed_replacement_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "inside").touch()

    with pytest.raises(OSError, match="directory"):
        durable.replace(folder, b"new")

    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_file_in_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        durable.replace(tmp_path / "missing" / "file", b"new")


def test_no_room_for_the_new_content_leaves_the_old_and_nothing_else(file: Path) -> None:
    done = run(LIMITED, str(file), "live")

    assert (done.stdout, done.stderr) == ("File too large\n", "")
    assert content(file.parent) == {"file": OLD}


def test_a_folder_that_cannot_be_flushed_keeps_the_new_content(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()

    done = run(UNREADABLE, folder=folder)

    folder.chmod(0o700)
    assert (done.returncode, done.stderr) == (0, "")
    assert content(folder) == {"file": b"new"}


def test_writers_in_many_threads_never_meet(tmp_path: Path) -> None:
    def write(number: int) -> None:
        for _ in range(10):
            durable.replace(tmp_path / "shared", b"%d" % number * 10_000)
            durable.replace(tmp_path / f"own-{number}", b"%d" % number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    shared = content(tmp_path).pop("shared")
    assert shared in {b"%d" % number * 10_000 for number in range(8)}
    assert content(tmp_path) == {"shared": shared} | {f"own-{n}": b"%d" % n for n in range(8)}


@pytest.fixture
def stray(file: Path) -> Path:
    """Give the half of a file that a process left which was killed while it wrote."""
    done = run(LIMITED, str(file), "die")
    assert done.returncode == -signal.SIGXFSZ
    (found,) = set(file.parent.iterdir()) - {file}
    assert found.stat().st_size == 1000
    return found


def test_what_a_killed_writer_left_is_swept_when_it_is_old(file: Path, stray: Path) -> None:
    assert durable.sweep(file.parent, time.time()) == 0
    assert stray.exists()

    assert durable.sweep(file.parent, time.time() + AN_HOUR) == 1
    assert content(file.parent) == {"file": OLD}


def test_what_may_still_have_a_writer_is_not_swept(file: Path, stray: Path) -> None:
    os.utime(stray, (1000, 1000))

    assert durable.sweep(file.parent, 1060.0) == 0
    assert durable.sweep(file.parent, 1060.1) == 1


def test_whoever_locks_out_every_writer_may_sweep_what_is_new(file: Path, stray: Path) -> None:
    os.utime(stray, (1000, 1000))

    assert durable.sweep(file.parent, 1000.0, age=0) == 0
    assert durable.sweep(file.parent, 1000.0, age=-1) == 1


def test_sweeping_touches_nothing_that_is_not_ours(file: Path) -> None:
    others = {".hidden.tmp", "notes.tmp", ".hidden", ".tmp", ".bridgehead-notes"}
    for name in others:
        (file.parent / name).write_bytes(OLD)

    assert durable.sweep(file.parent, time.time() + AN_HOUR) == 0

    assert content(file.parent) == dict.fromkeys(others | {"file"}, OLD)


def test_sweeping_passes_over_what_cannot_be_removed(file: Path, stray: Path) -> None:
    stray.unlink()
    stray.mkdir()

    assert durable.sweep(file.parent, time.time() + AN_HOUR) == 0

    assert stray.is_dir()


def test_sweeping_goes_on_after_what_cannot_be_removed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink, tried = Path.unlink, []

    def refuse_the_first(path: Path) -> None:
        tried.append(path)
        if len(tried) == 1:
            raise PermissionError
        unlink(path)

    for number in range(3):
        (file.parent / f".bridgehead-{number}.tmp").touch()
    monkeypatch.setattr(Path, "unlink", refuse_the_first)

    assert durable.sweep(file.parent, time.time() + AN_HOUR) == 2
    assert content(file.parent) == {"file": OLD, tried[0].name: b""}


def test_there_is_nothing_to_sweep_in_a_folder_that_is_missing(tmp_path: Path) -> None:
    assert durable.sweep(tmp_path / "missing", time.time()) == 0


def test_a_folder_is_made_with_those_it_is_in(tmp_path: Path) -> None:
    durable.make_folder(tmp_path / "a" / "b")
    durable.make_folder(tmp_path / "a" / "b")

    assert (tmp_path / "a" / "b").is_dir()


def test_a_file_in_the_way_of_a_folder_is_an_error_and_stays(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")

    with pytest.raises(OSError, match="a"):
        durable.make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a").read_text() == "x"
