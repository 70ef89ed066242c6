"""The command that a client will start."""

import sys
import sysconfig
from pathlib import Path

import pytest

from bridgehead.install import machine
from bridgehead.install.errors import InstallError


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
    program, *arguments = machine.named_command(
        f"{sys.executable} -m bridgehead", is_windows=sys.platform == "win32"
    )

    assert (Path(program).name, Path(program).is_absolute()) == (name, True)
    assert arguments == ["-m", "bridgehead"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (r'"{}" -m bridgehead', ["-m", "bridgehead"]),
        (r'{} --env "a b" C:\new\x.json', ["--env", "a b", r"C:\new\x.json"]),
        (r"{} it's", ["it's"]),
        (r'{} \\server\share\"My Files"\x', [r"\\server\share\My Files\x"]),
    ],
)
def test_a_command_is_split_as_windows_does_without_its_quotes(text: str, words: list[str]) -> None:
    program, *arguments = machine.named_command(text.format(sys.executable), is_windows=True)

    assert Path(program) == Path(sys.executable)
    assert arguments == words


def test_a_quote_that_is_never_closed_is_refused() -> None:
    with pytest.raises(InstallError, match="not a program"):
        machine.named_command('"python -m bridgehead', is_windows=True)


def test_what_is_in_the_cache_of_uvx_is_started_through_uvx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = str(tmp_path / "uv" / "archive-v0" / "x" / "bin" / "bridgehead")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstallError, match="uv tool install bridgehead"):
        machine.make_lasting((program,))

    uvx = tmp_path / ("uvx.exe" if sys.platform == "win32" else "uvx")
    uvx.write_text("", encoding="utf-8")
    uvx.chmod(0o755)
    assert machine.make_lasting((program,)) == (str(uvx), "bridgehead")
    assert machine.make_lasting(("/opt/bridgehead",)) == ("/opt/bridgehead",)
