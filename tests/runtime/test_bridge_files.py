"""A bridge is found by its name, file or module, and what is wrong with a file is said in a sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from bridgehead.runtime import bridge_files
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.plugins import UnknownBridge

ONE = """
from bridgehead.mcp import Arguments, Bridge, Context

bridge = Bridge("{name}", "1", title="Small")

@bridge.tool("Say it.", read_only=True)
def say(args: Arguments, ctx: Context[None]) -> str:
    return "said"
"""


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Forget what a test imports, and start in an empty folder."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("server", "small", "pack", "pack.bridge", "tools_of_it"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.chdir(tmp_path)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def refusal(target: str) -> str:
    with pytest.raises(BridgeError) as caught:
        bridge_files.load(target)
    return str(caught.value)


def test_the_bridge_in_a_file_is_found_by_its_type(tmp_path: Path) -> None:
    write(
        tmp_path / "server.py",
        ONE.format(name="notes").replace("bridge", "served").replace("served", "bridge", 1),
    )

    found = bridge_files.load("server.py")

    assert (found.name, found.title) == ("notes", "Small")
    assert list(found.make(None, None).tools) == ["say"]


@pytest.mark.parametrize(
    "spelling", ["server.py", "./server.py", "{folder}/server.py", "{folder}/server.py:bridge"]
)
def test_a_path_may_be_relative_or_absolute_and_name_the_object(tmp_path: Path, spelling: str) -> None:
    write(tmp_path / "server.py", ONE.format(name="notes"))

    assert bridge_files.load(spelling.format(folder=tmp_path.as_posix())).name == "notes"


@pytest.mark.parametrize(
    ("target", "path", "attribute"),
    [
        ("server.py", "server.py", ""),
        ("server.py:mine", "server.py", "mine"),
        (r"C:\mine\server.py", r"C:\mine\server.py", ""),
        (r"C:\mine\server.py:mine", r"C:\mine\server.py", "mine"),
        ("C:/mine/server.PY:mine", "C:/mine/server.PY", "mine"),
        ("/srv/a:b/server.py", "/srv/a:b/server.py", ""),
        ("./server", "./server", ""),
    ],
)
def test_a_path_is_told_from_the_name_of_its_object_on_every_system(
    target: str, path: str, attribute: str
) -> None:
    assert bridge_files.is_file(target)
    assert bridge_files.split(target) == (path, attribute)


@pytest.mark.parametrize(
    "target", ["aoc", "my-notes", "weather_bridge.bridge", "weather_bridge.bridge:manifest"]
)
def test_a_name_or_a_module_is_not_a_path(target: str) -> None:
    assert not bridge_files.is_file(target)


def test_a_file_in_a_package_may_import_from_its_package(tmp_path: Path) -> None:
    write(tmp_path / "src/pack/__init__.py", 'NAME = "packed"\n')
    text = ONE.format(name="x").replace('"x"', "NAME").replace("\nfrom", "from . import NAME\nfrom", 1)
    write(tmp_path / "src/pack/bridge.py", text)

    assert bridge_files.load("src/pack/bridge.py").name == "packed"


def test_a_file_may_import_the_files_beside_it_and_they_may_import_it(tmp_path: Path) -> None:
    text = 'from bridgehead.mcp import Bridge\nbridge = Bridge("split", "1")\nimport tools_of_it\n'
    write(tmp_path / "server.py", text)
    tool = '@bridge.tool("Say it.", read_only=True)\ndef say(args: Arguments, ctx: Context) -> str: ...\n'
    write(
        tmp_path / "tools_of_it.py",
        f"from bridgehead.mcp import Arguments, Context\nfrom server import bridge\n{tool}",
    )

    assert list(bridge_files.load("server.py").make(None, None).tools) == ["say"]


def test_a_file_may_have_the_name_of_a_module_that_is_loaded_or_no_name_for_a_module(tmp_path: Path) -> None:
    for name in ("json", "my-server"):
        write(tmp_path / f"{name}.py", ONE.format(name=f"of-{name}"))
        assert bridge_files.load(f"{name}.py").name == f"of-{name}"
    assert sys.modules["json"].__file__ != str(tmp_path / "json.py")


def test_a_module_is_found_from_the_current_folder(tmp_path: Path) -> None:
    write(tmp_path / "small.py", ONE.format(name="notes"))

    assert bridge_files.load("small").name == "notes"
    assert bridge_files.load("small:bridge").name == "notes"


def test_a_name_comes_before_a_module() -> None:
    assert bridge_files.load("aoc").name == "aoc"
    with pytest.raises(UnknownBridge):
        bridge_files.load("no_such_module_at_all")


def test_a_manifest_comes_before_a_bridge(tmp_path: Path) -> None:
    text = ONE.format(name="raw") + "from bridgehead.aoc.bridge import manifest as declared\n"
    write(tmp_path / "server.py", text)

    assert bridge_files.load("server.py").name == "aoc"
    assert bridge_files.load("server.py:bridge").name == "raw"


def test_of_several_bridges_one_has_to_be_named(tmp_path: Path) -> None:
    write(
        tmp_path / "server.py",
        'from bridgehead.mcp import Bridge\nfirst = Bridge("a", "1")\nsecond = Bridge("b", "1")\n'
        "again = first\n",
    )

    said = refusal("server.py")
    assert "server.py has 2 bridges: first (Bridge 'a'), second (Bridge 'b')." in said
    assert "Name one of them: server.py:first" in said
    assert bridge_files.load("server.py:second").name == "b"


def test_a_file_without_a_bridge_is_told_what_it_has(tmp_path: Path) -> None:
    write(tmp_path / "server.py", "import json\nclass App: ...\napp = App()\ndef make(): ...\n")

    said = refusal("server.py")
    assert (
        "server.py has no Bridge or Manifest at its top level, only App (class), app (App), make (function)."
        in said
    )
    assert 'bridge = Bridge("server", "1.0.0")' in said
    said = refusal("server.py:app")
    assert "app in server.py is of type App, not a Bridge or Manifest." in said
    said = refusal("server.py:other")
    assert "server.py has no 'other'." in said


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1\ndef broken(:\n", "server.py, line 2: SyntaxError"),
        ("x = 1\n\nraise ValueError('no luck')\n", "server.py, line 3: ValueError: no luck"),
        ("import no_such_library\n", "No module named 'no_such_library'"),
        ("raise SystemExit(3)\n", "server.py, line 1: SystemExit: 3"),
    ],
)
def test_a_file_that_cannot_be_imported_says_where_and_why(tmp_path: Path, text: str, reason: str) -> None:
    write(tmp_path / "server.py", text)

    assert reason in refusal("server.py")


def test_a_library_that_is_missing_is_installed_for_the_python_that_runs_bridgehead(tmp_path: Path) -> None:
    write(tmp_path / "server.py", "import no_such_library.part\n")

    assert f"Install it for {sys.executable}" in refusal("server.py")


def test_a_path_that_is_not_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    write(tmp_path / "notes.txt", "")

    assert f"There is no file {tmp_path / 'missing.py'}." in refusal("missing.py")
    assert "is a folder" in refusal("./folder")
    assert "is not a Python file" in refusal("./notes.txt")


def test_a_file_that_serves_its_bridge_when_it_is_imported_is_only_read(tmp_path: Path) -> None:
    # Without `if __name__ == "__main__"`; `tools` must not wait for a client then.
    for start in (
        "from bridgehead.mcp import stdio\nraise SystemExit(stdio.run(bridge))\n",
        "from bridgehead.mcp import http\nhttp.run(http.application(bridge), port=0)\n",
    ):
        path = write(tmp_path / "server.py", ONE.format(name="eager") + start)
        done = subprocess.run(
            [sys.executable, "-m", "bridgehead", "tools", str(path)],
            stdin=subprocess.PIPE,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "say" in done.stdout


def test_what_a_file_prints_does_not_go_to_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "server.py", ONE.format(name="loud") + "print('hello')\n")

    bridge_files.load("server.py")

    assert capsys.readouterr() == ("", "hello\n")


@pytest.mark.parametrize(
    ("named", "name"),
    [
        ("My Notes!", "my-notes"),
        ("weather", "weather"),
        ("serve", "serve-bridge"),
        ("2048", "bridge-2048"),
        ("…", "server"),
    ],
)
def test_the_name_of_a_bridge_becomes_one_for_commands_and_addresses(
    tmp_path: Path, named: str, name: str
) -> None:
    write(tmp_path / "server.py", ONE.format(name=named))

    assert bridge_files.load("server.py").name == name
