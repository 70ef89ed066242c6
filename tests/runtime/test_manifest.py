"""Manifest: the modules of a bridge's package are found by their names, and only when they are used."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import BrokenPart, Manifest

SERVED = ("doctor", "demo", "commands")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An importable package without modules; it is forgotten afterwards."""
    folder = tmp_path / "parts_of_a_bridge"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("", *(f".{module}" for module in SERVED)):
        monkeypatch.delitem(sys.modules, folder.name + name, raising=False)
    return folder


def manifest_of(package: str) -> Manifest:
    return msgspec.structs.replace(plugins.load("aoc"), package=package)


@pytest.mark.parametrize("name", plugins.built_in_names())
def test_a_built_in_bridge_has_every_part(name: str) -> None:
    manifest = plugins.load(name)

    assert manifest.load_doctor() is not None
    assert manifest.load_demo() is not None
    assert manifest.load_trial() is not None
    assert manifest.load_commands() is not None


def test_a_manifest_loads_none_of_them_before_they_are_asked_for() -> None:
    program = "import sys; from bridgehead.runtime import plugins; plugins.load('aoc'); print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "bridgehead.aoc.bridge" in done.stdout.split()
    assert {f"bridgehead.aoc.{name}" for name in SERVED}.isdisjoint(done.stdout.split())


def test_a_bridge_can_do_without_any_of_them(package: Path) -> None:
    for manifest in (manifest_of(package.name), manifest_of("")):
        assert manifest.load_doctor() is None
        assert manifest.load_demo() is None
        assert manifest.load_trial() is None
        assert manifest.load_commands() is None


def test_a_demo_can_do_without_a_trial(package: Path) -> None:
    (package / "demo.py").write_text("def show_demo(console): return True")

    assert manifest_of(package.name).load_demo() is not None
    assert manifest_of(package.name).load_trial() is None


@pytest.mark.parametrize(
    ("module", "text", "missing"),
    [
        ("doctor", "", "examine"),
        ("demo", "def shows_demo(console): ...", "show_demo"),
        ("commands", "def main(arguments, environment): ...", "parser"),
        ("commands", "def parser(): ...", "main"),
    ],
)
def test_a_module_without_its_function_is_named_with_the_function(
    package: Path, module: str, text: str, missing: str
) -> None:
    (package / f"{module}.py").write_text(text)

    with pytest.raises(BrokenPart, match=f"{package.name}.{module} has no function '{missing}'"):
        getattr(manifest_of(package.name), f"load_{module}")()


def test_a_module_that_cannot_be_imported_is_named_with_the_reason(package: Path) -> None:
    (package / "doctor.py").write_text("import nowhere_to_be_found")

    with pytest.raises(
        BrokenPart,
        match=f"{package.name}.doctor cannot be imported: ModuleNotFoundError: .*nowhere_to_be_found",
    ):
        manifest_of(package.name).load_doctor()
