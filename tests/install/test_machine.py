"""The command that a client will start."""

import sys
import sysconfig
from pathlib import Path

from bridgehead.install import machine

from .desk import Desk


def test_the_installed_script_is_the_command() -> None:
    (script,) = machine.installed_command()

    assert Path(script).parent == Path(sysconfig.get_path("scripts"))
    assert Path(script).is_file()


def test_without_a_script_the_interpreter_runs_the_package(tmp_path: Path) -> None:
    assert machine.choose_command(tmp_path / "none", "/opt/python", None) == (
        "/opt/python",
        "-m",
        "bridgehead",
    )


def test_an_archive_is_run_by_the_interpreter(tmp_path: Path) -> None:
    archive = str(tmp_path / "bridgehead.pyz")

    assert machine.choose_command(tmp_path / "none", "/opt/python", archive) == ("/opt/python", archive)


def test_a_command_may_have_arguments_and_gets_its_full_path() -> None:
    name = Path(sys.executable).name
    program, *arguments = machine.named_command(f"{sys.executable} -m bridgehead", is_windows=False)

    assert (Path(program).name, Path(program).is_absolute()) == (name, True)
    assert arguments == ["-m", "bridgehead"]


def test_a_command_from_a_cache_is_noticed(desk: Desk) -> None:
    program = desk.home / "uv" / "archive-v0" / "x" / "bin" / "bridgehead"
    program.parent.mkdir(parents=True)
    program.write_text("", encoding="utf-8")

    said = desk.install("cursor", "aoc", "--command", str(program))

    assert "is in a cache and may go away" in said.out
