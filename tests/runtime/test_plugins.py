"""Plugins: which bridges there are, and how each is loaded."""

import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from bridgehead.commands import COMMANDS
from bridgehead.install.entries import read_server_environment
from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import Manifest
from tests.support.plugins import install_weather, write_distribution

ROOT = Path(__file__).parents[2]
MANIFEST = """
from bridgehead.mcp import Bridge
from bridgehead.runtime.manifest import FarSide, Manifest
from bridgehead.runtime.settings import Settings

manifest = Manifest(
    name="{name}", title="T", summary="s", description="D.", settings=Settings, api={api},
    make=lambda settings, metrics: Bridge("{name}", "1"), far_side=lambda state: FarSide(True, "There."),
)
"""


def code(name: str, api: int = 1) -> str:
    return MANIFEST.format(name=name, api=api)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed distributions, first on sys.path."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_a_built_in_bridge_is_loaded_by_its_name_and_carries_it() -> None:
    assert [plugins.load(name).name for name in plugins.built_in_names()] == list(plugins.built_in_names())


def test_the_built_in_bridges_are_registered_as_those_of_others_are() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    registered = project["entry-points"][plugins.GROUP]
    assert registered == {name: f"bridgehead.{name}.bridge:manifest" for name in plugins.built_in_names()}


def test_a_package_that_is_no_bridge_is_not_one() -> None:
    assert not any(map(plugins.is_built_in, ("mcp", "host", "runtime", "", "..", "aoc/files")))


def test_an_unknown_bridge_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(plugins.UnknownBridge, match=r"Unknown bridge 'moon'\. Available: aoc, "):
        plugins.load("moon")


@pytest.mark.parametrize("name", plugins.built_in_names())
def test_every_bridge_can_be_installed_with_nothing_set(name: str) -> None:
    assert read_server_environment(plugins.load(name).settings, {}).variables == {}


def test_no_command_can_be_taken_for_a_bridge() -> None:
    assert COMMANDS.keys() <= plugins.RESERVED


def test_a_bridge_of_another_distribution_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(install_weather(tmp_path)))

    assert plugins.names() == (*plugins.built_in_names(), "weather")
    assert plugins.find_plugin("weather") == plugins.installed_plugins()[0]
    found = plugins.load("weather")
    assert (type(found), found.title) == (Manifest, "Weather")


def test_distributions_are_read_once_until_another_is_installed(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    read = metadata.entry_points

    def counted(*, group: str) -> metadata.EntryPoints:
        reads.append(group)
        return read(group=group)

    monkeypatch.setattr(metadata, "entry_points", counted)
    for _ in range(3):
        assert "late" not in plugins.names()
    assert len(reads) == 1

    write_distribution(site, "late", "late", code("late"))
    assert "late" in plugins.names()
    assert len(reads) == 2


def test_listing_imports_nothing(site: Path) -> None:
    write_distribution(site, "bomb", "bomb", "raise SystemExit('imported')")

    assert "bomb" in plugins.names()


def test_a_distribution_in_a_zip_file_is_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_distribution(tmp_path / "made", "zipped", "zipped", code("zipped"))
    packed = tmp_path / "packed.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in folder.rglob("*"):
            archive.write(path, path.relative_to(folder))
    monkeypatch.syspath_prepend(str(packed))

    assert plugins.load("zipped").name == "zipped"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit('no')", "SystemExit: no"),
        ("def def", "SyntaxError: "),
        ("other = 1", "AttributeError: "),
        ("manifest = 1", "broken_bridge:manifest is not a Manifest"),
        (code("another"), "its manifest has the name 'another'"),
    ],
)
def test_one_that_cannot_be_loaded_says_which_distribution_and_why(
    site: Path, text: str, reason: str
) -> None:
    write_distribution(site, "broken", "broken", text)

    with pytest.raises(plugins.PluginError) as refused:
        plugins.load("broken")

    sys.modules.pop("broken_bridge", None)
    assert str(refused.value).startswith(f"The bridge broken (broken 1.0) cannot be loaded: {reason}")
    assert refused.value.next_step == "Upgrade or uninstall broken."


@pytest.mark.parametrize(("api", "step"), [(2, "Upgrade bridgehead."), (0, "Upgrade future.")])
@pytest.mark.parametrize("text", ["API = {}\nraise RuntimeError('too late')", None])
def test_one_for_another_api_is_refused_in_one_sentence(
    site: Path, api: int, step: str, text: str | None
) -> None:
    write_distribution(site, "future", "future", text.format(api) if text else code("future", api))

    with pytest.raises(plugins.PluginError) as refused:
        plugins.load("future")

    sys.modules.pop("future_bridge", None)
    assert str(refused.value) == (
        f"The bridge future (future 1.0) needs API {api}, and this Bridgehead has API 1. {step}"
    )


def test_two_distributions_with_one_name_are_both_refused(site: Path) -> None:
    write_distribution(site, "one", "storm", code("storm"))
    write_distribution(site, "two", "storm", code("storm"))

    assert [plugin.distribution for plugin in plugins.installed_plugins() if plugin.problem] == ["one", "two"]
    assert "storm" not in plugins.names()
    with pytest.raises(plugins.PluginError, match=r"is refused: both one 1\.0 and two 1\.0 register it\."):
        plugins.load("storm")


@pytest.mark.parametrize("name", ["aoc", "serve", "none", "Upper", "../x"])
def test_a_name_that_is_taken_or_is_none_is_refused(site: Path, name: str) -> None:
    write_distribution(site, "impostor", name, code(name))

    (refused,) = [plugin for plugin in plugins.installed_plugins() if plugin.distribution == "impostor"]
    assert refused.problem.startswith(f"The bridge {name} of impostor 1.0 is refused: that ")
    assert name in plugins.built_in_names() or name not in plugins.names()
    assert plugins.load("aoc").title == "Advent of Code"


def test_the_same_distribution_twice_on_the_path_is_one(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_distribution(site, "twin", "twin", code("twin"))
    monkeypatch.syspath_prepend(str(write_distribution(tmp_path / "again", "Twin", "twin", code("twin"))))

    assert plugins.load("twin").name == "twin"


def test_a_built_in_bridge_is_started_without_looking_for_others(tmp_path: Path) -> None:
    program = (
        "import sys; from bridgehead.runtime import plugins; plugins.load('aoc'); "
        "print('importlib.metadata' in sys.modules, 'importlib.util' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{program}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout == "False False\n"
