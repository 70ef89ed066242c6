"""Isolation: what a program under bubblewrap can see and reach."""

import os
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from bridgehead.aoc.sandbox.isolation import find_bubblewrap, find_parts
from tests.aoc.sandbox.solver_run import IS_ISOLATED, run

isolated = pytest.mark.skipif(not IS_ISOLATED, reason="bubblewrap is not available on this system")
WRITE = """
import pathlib
try:
    pathlib.Path({!r}).write_text("x")
    print("written")
except OSError:
    print("refused")
"""
SOCKETS = """
import os, stat
tops = ("/run", "/home", "/root")
found = [os.path.join(at, name) for top in tops for at, _, names in os.walk(top) for name in names]
print([path for path in found if stat.S_ISSOCK(os.lstat(path).st_mode)])
print(os.path.exists("/run/docker.sock"), sorted(set(os.listdir("/run")) - {"systemd", "NetworkManager"}))
"""
CONNECT = """
import socket
try:
    socket.create_connection(("127.0.0.1", {}), 5)
    print("reached")
except OSError:
    print("refused")
"""


@isolated
def test_the_input_and_an_empty_home_are_all_that_a_program_finds(tmp_path: Path) -> None:
    home = Path.home()
    done = run(
        "import os, pathlib\n"
        "print(sorted(os.listdir()), input())\n"
        f"print([p for p in os.listdir({str(home)!r}) if not p.startswith('.')])\n",
        tmp_path,
    )

    assert done.out.splitlines() == ["['input.txt'] 42", "[]"], done.err


@isolated
def test_sockets_of_services_and_other_homes_are_hidden(tmp_path: Path) -> None:
    done = run(SOCKETS, tmp_path)

    assert done.out == "[]\nFalse []\n", done.err


@isolated
def test_hidden_folders_are_empty_even_beside_the_solver(tmp_path: Path) -> None:
    answers, key = tmp_path / "answers", tmp_path / "grade.key"
    answers.mkdir()
    (answers / "Day01_phase1.txt").write_text("447")
    key.write_text("secret")
    (tmp_path / "solver").mkdir()

    program = f"import os\nprint(os.path.isdir({str(tmp_path / 'solver')!r}), os.listdir({str(answers)!r}))\n"
    program += f"open({str(key)!r})"

    done = run(program, tmp_path, readable=(tmp_path,), hidden=(answers, key))

    assert done.out == "True []\n", done.err
    assert "PermissionError" in done.err
    assert (answers / "Day01_phase1.txt").read_text() == "447"


@isolated
def test_nothing_but_the_fresh_folder_can_be_written(tmp_path: Path) -> None:
    outside = tmp_path / "cache"

    refused = run(WRITE.format(str(outside)), tmp_path)

    assert not outside.exists()
    assert refused.out in {"refused\n", "written\n"}  # a hidden /tmp takes the file, and loses it
    (tmp_path / "fresh" / "input.txt").unlink()
    (tmp_path / "fresh").rmdir()
    assert run(WRITE.format("here"), tmp_path).out == "written\n"


@isolated
def test_there_is_no_network_unless_it_is_shared(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        program = CONNECT.format(server.getsockname()[1])
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        assert run(program, tmp_path / "a").out == "refused\n"
        assert run(program, tmp_path / "b", has_network=True).out == "reached\n"


def test_files_in_a_command_become_absolute_and_their_folders_are_needed(tmp_path: Path) -> None:
    solver = tmp_path / "day01" / "solve.py"
    solver.parent.mkdir()
    solver.write_text("print(1)")

    command, needed = find_parts([sys.executable, "day01/solve.py", "--fast", "nothing.txt"], tmp_path)

    assert command == [sys.executable, str(solver), "--fast", "nothing.txt"]
    assert solver.parent in needed
    if sys.platform == "win32":  # where nothing is isolated
        return
    # The folder of the interpreter, and of the one that it links to.
    assert {Path(sys.executable).parent.parent, Path(sys.executable).resolve().parent.parent} <= set(needed)


def test_a_file_in_the_home_directory_is_shown_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "solve.py").write_text("print(1)")

    _, needed = find_parts(["python", "solve.py"], tmp_path)

    assert tmp_path / "solve.py" in needed
    assert tmp_path not in needed


def test_a_folder_with_a_slash_becomes_absolute_but_home_and_root_are_never_shown(tmp_path: Path) -> None:
    (tmp_path / "day01").mkdir()

    command, needed = find_parts(["no-such-program", "./day01", "day01", os.sep, f"~{os.sep}"], tmp_path)

    assert command == ["no-such-program", str(tmp_path / "day01"), "day01", os.sep, f"~{os.sep}"]
    assert set(needed) == {tmp_path / "day01", (tmp_path / "day01").resolve()}


@isolated
def test_a_hidden_folder_is_empty_also_where_a_link_leads(tmp_path: Path) -> None:
    real = tmp_path / "real" / "answers"
    real.mkdir(parents=True)
    (real / "one.txt").write_text("4711")
    (tmp_path / "answers").symlink_to(real)
    look = f"import os; print(os.listdir({str(real)!r}), os.listdir({str(tmp_path / 'answers')!r}))"

    done = run(look, tmp_path, readable=(tmp_path,), hidden=(tmp_path / "answers",))

    assert done.out == "[] []\n", done.err


def test_a_file_in_the_temporary_folder_is_shown_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "solve.py").write_text("print(1)")

    _, needed = find_parts(["python", "solve.py"], tmp_path)

    assert tmp_path / "solve.py" in needed
    assert tmp_path not in needed


def test_a_bubblewrap_that_cannot_make_namespaces_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    find_bubblewrap.cache_clear()
    try:
        assert find_bubblewrap() is None
    finally:
        find_bubblewrap.cache_clear()
