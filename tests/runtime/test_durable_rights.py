"""Durable: whose a new file is, and how files are handled that somebody else has open, as on Windows."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bridgehead.runtime import durable

# --- whose it is -------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o600)
    return path


@pytest.fixture
def granted_rights(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The rights that are given, in their order."""
    found: list[tuple[int, ...]] = []
    monkeypatch.setattr(os, "fchown", lambda _file, *owners: found.append(owners), raising=False)
    monkeypatch.setattr(os, "fchmod", lambda _file, mode: found.append((mode,)), raising=False)
    return found


def like(file: Path, mode: int = 0o600, group: int | None = None) -> os.stat_result:
    """Return the status of a file that has another mode or group."""
    own = file.stat()
    fields = list(own)
    fields[0], fields[5] = 0o100000 | mode, own.st_gid if group is None else group
    return os.stat_result(fields)


def give(file: Path, other: os.stat_result | None, share: int = 0) -> None:
    with file.open("rb") as opened:
        durable.give_rights(opened.fileno(), other, share)


def test_a_file_gets_the_group_of_another_and_then_its_mode(
    file: Path, granted_rights: list[tuple[int, ...]]
) -> None:
    give(file, like(file, 0o2640, 4242))

    assert granted_rights == [(-1, 4242), (0o2640,)]


def test_only_what_is_different_is_given(file: Path, granted_rights: list[tuple[int, ...]]) -> None:
    give(file, like(file))
    give(file, None)
    assert granted_rights == []

    give(file, like(file, 0o640))
    give(file, like(file, group=4242))
    assert granted_rights == [(0o640,), (-1, 4242)]


def test_rights_that_are_shared_are_added(file: Path, granted_rights: list[tuple[int, ...]]) -> None:
    give(file, None, 0o060)

    assert granted_rights == [(0o660,)]


@pytest.mark.skipif(sys.platform == "win32", reason="other rights")
def test_a_file_that_is_replaced_keeps_its_mode_or_shares_what_it_is_told_to(file: Path) -> None:
    durable.replace(file, b"new", like=like(file, 0o604))
    assert file.stat().st_mode & 0o7777 == 0o604

    durable.replace(file, b"new", share=0o060)
    assert file.stat().st_mode & 0o7777 == 0o660


def test_a_group_that_may_not_be_given_does_not_stop_the_new_content(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse, raising=False)

    durable.replace(file, b"new", like=like(file, group=4242))

    assert file.read_bytes() == b"new"


def test_a_system_without_groups_and_modes_is_asked_for_neither(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fchown", "fchmod"):
        monkeypatch.delattr(os, name, raising=False)

    give(file, like(file, 0o640, 4242))


def test_on_windows_content_is_flushed_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setattr(os, "fsync", flushed.append)
    with file.open("rb") as opened:
        durable.flush(opened.fileno())

        assert flushed == [opened.fileno()]


# --- what somebody has open --------------------------------------------------------------------------------


class Refusing:
    """Something that is refused some times, and then works."""

    def __init__(self, times: int, act: Callable[[], object] = lambda: "done") -> None:
        self._left = times
        self._act = act
        self.calls = 0

    def __call__(self, *_: object, **__: object) -> object:
        self.calls += 1
        if self.calls <= self._left:
            raise PermissionError(13, "Permission denied")
        return self._act()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited each time; nobody really waits."""
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")


@pytest.mark.usefixtures("windows")
def test_the_pauses_grow_up_to_a_twentieth_of_a_second(pauses: list[float]) -> None:
    assert durable.retry_while_locked(Refusing(8)) == "done"

    assert pauses == [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.05, 0.05]


def test_elsewhere_a_refusal_is_final(pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    refusing = Refusing(1)
    with pytest.raises(PermissionError):
        durable.retry_while_locked(refusing)

    assert (refusing.calls, pauses) == (1, [])


@pytest.mark.usefixtures("windows", "pauses")
def test_a_file_that_is_just_being_replaced_is_read_when_it_is_there(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_bytes", Refusing(2, lambda: b"new"))

    assert durable.read(file) == b"new"


@pytest.mark.usefixtures("windows", "pauses")
def test_a_folder_is_no_file_that_somebody_has_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = Refusing(9)
    monkeypatch.setattr(Path, "read_bytes", refusing)
    with pytest.raises(PermissionError):
        durable.read(tmp_path)

    assert refusing.calls == 1


@pytest.mark.usefixtures("windows", "pauses")
def test_a_file_is_removed_when_nobody_has_it_open(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink = Path.unlink
    refusing = Refusing(2, lambda: unlink(file))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refusing)
        durable.remove(file)

    assert (file.exists(), refusing.calls) == (False, 3)
    durable.remove(file)  # which is gone already
