"""The documents that are made from the code: `.env.example`, docs/configuration.md and the api pages.

They are what the code says, they leave nothing out, and every example in them is a call that works.
"""

import json
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import pytest
from msgspec import Raw

import bridgehead
from bridgehead.commands import tool_arguments
from bridgehead.mercury.simulator import Simulator
from bridgehead.runtime import env_file, plugins
from bridgehead.runtime.manifest import make_bridge
from bridgehead.runtime.settings import Setting, Settings
from docs import generate
from tests.bitburner.playing import FILES, played
from tests.support.checked import connect
from tests.support.game import Game
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parent.parent
COMMAND = Path(sysconfig.get_path("scripts"), "bridgehead.exe" if sys.platform == "win32" else "bridgehead")
API = "".join(
    (ROOT / "docs" / f"api-{name}.md").read_text(encoding="utf-8") for name in plugins.built_in_names()
)
DOCUMENTS = generate.documents()
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
ENV_EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^```sh\n(?P<line>.*?)\n```\n\n```json\n(?P<params>.*?)\n```", re.MULTILINE | re.DOTALL)
LINES = {shlex.split(found["line"])[3]: found["line"] for found in EXAMPLE.finditer(API)}
PARAMS = {
    params["name"]: params for found in EXAMPLE.finditer(API) if (params := json.loads(found["params"]))
}
BRIDGES = {name: make_bridge(plugins.load(name), {}) for name in plugins.built_in_names()}
TOOLS = {tool.name: tool for bridge in BRIDGES.values() for tool in generate.listed(bridge)}


def classes_of_settings() -> list[type[Settings]]:
    """Every class of settings in the distribution, also those that nobody told the generator of."""
    for module in pkgutil.walk_packages(bridgehead.__path__, "bridgehead."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    return [one for one in below(Settings) if one.__module__.startswith("bridgehead.")]


def below(parent: type[Settings]) -> Iterator[type[Settings]]:
    for child in parent.__subclasses__():
        yield child
        yield from below(child)


CLASSES = classes_of_settings()
SETTINGS: list[Setting[Any]] = list({id(one): one for of in CLASSES for one in of.declared}.values())


def uncommented() -> dict[str, str]:
    """What `.env.example` would set if someone removed the sign before each setting."""
    return env_file.parse(re.sub(r"^#(?=[A-Z])", "", ENV_EXAMPLE, flags=re.MULTILINE))


def in_order(bridge: str) -> list[str]:
    """The tools of a bridge, in the order in which their examples make sense."""
    return list(generate.examples()[bridge])


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_says_what_the_code_says(path: Path) -> None:
    assert generate.difference(path, DOCUMENTS[path]) == "", "run `make docs`"


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_of_the_distribution_is_in_the_page(setting: Setting[Any]) -> None:
    (row,) = [line for line in CONFIGURATION.splitlines() if line.startswith(f"| `{setting.name}` |")]

    assert setting.about in row.replace("\\|", "|")
    assert setting.shown_default in row
    assert ("**Secret.**" in row) is setting.is_secret


def test_every_setting_has_one_purpose_and_every_purpose_names_settings_that_exist() -> None:
    named = [name for names in generate.PURPOSES.values() for name in names]

    assert sorted(named) == sorted({setting.name for setting in SETTINGS})


def test_the_example_of_an_env_file_has_the_settings_that_people_set_most_and_each_exists() -> None:
    shown = re.findall(r"^#([A-Z_0-9]+)=", ENV_EXAMPLE, re.MULTILINE)

    assert sorted(shown) == sorted(generate.IN_ENV_EXAMPLE)
    assert set(shown) <= {setting.name for setting in SETTINGS}


def test_what_other_pages_repeat_of_a_setting_is_so() -> None:
    declared = {setting.name: setting for setting in SETTINGS}
    found = 0
    for page in sorted((ROOT / "docs").glob("*.md")):
        tables = page.read_text(encoding="utf-8").split("| variable | default | what it does |\n")[1:]
        for row in re.findall(r"^\| `([A-Z_0-9]+)` \| (.*?)\| (.*) \|$", "".join(tables), re.MULTILINE):
            name, default, about = row
            assert default.strip(" `") == declared[name].shown_default, name
            assert declared[name].about.startswith(about.rstrip(".")), name
            found += 1

    assert found > 0


def test_the_example_of_an_env_file_sets_nothing_as_it_is() -> None:
    assert env_file.parse(ENV_EXAMPLE) == {}


@pytest.mark.parametrize("of", CLASSES, ids=lambda of: of.__name__)
def test_the_example_of_an_env_file_shows_the_defaults(of: type[Settings]) -> None:
    assert of(uncommented()).values == of({}).values


def test_no_secret_has_a_value_in_the_example_of_an_env_file() -> None:
    secrets = {setting.name for setting in SETTINGS if setting.is_secret}

    assert {"MERCURY_API_KEY", "BITBURNER_RPC_URL"} <= secrets
    assert {uncommented().get(name, "") for name in secrets} == {""}


def test_the_page_of_the_tools_has_every_tool_with_all_that_it_takes_and_gives() -> None:
    for name, tool in TOOLS.items():
        section = API.split(f"\n## {name}\n")[1].split("\n## ")[0]
        assert tool.description in section
        if "the same as of" not in section:
            for schema in (tool.input_schema, tool.output_schema or {}):
                assert [key for key in schema.get("properties", {}) if f"| `{key}` |" not in section] == []
    for bridge in BRIDGES.values():
        assert [
            key for key in (*bridge.resources, *bridge.templates, *bridge.prompts) if key not in API
        ] == []


@pytest.mark.parametrize("name", TOOLS)
def test_an_example_is_what_its_tool_takes_typed_or_sent(name: str) -> None:
    def read_file(path: str) -> NoReturn:
        raise AssertionError(path)

    given, tool = PARAMS[name]["arguments"], TOOLS[name]
    typed = tool_arguments.arguments(shlex.split(LINES[name])[4:], tool.input_schema, read_file)

    assert typed == given
    assert tool.decode(Raw(json.dumps(given).encode()))


async def test_every_example_of_bitburner_works_with_a_game(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, FILES)) as play:
        for name in in_order("bitburner"):
            await play.ok(name, **PARAMS[name]["arguments"])


async def test_every_example_of_mercury_works_with_the_api(tmp_path: Path) -> None:
    async with Simulator() as api:
        environment = {
            "MERCURY_API_URL": api.url,
            "MERCURY_API_KEY": "sk_0123456789",
            "BRIDGEHEAD_STATE_DIR": str(tmp_path),
        }
        async with connect(make_bridge(plugins.load("mercury"), environment)) as client:
            for name in in_order("mercury"):
                result = await client.call(name, PARAMS[name]["arguments"])
                assert not result.get("isError"), result


def test_every_example_of_aoc_works_as_it_is_typed(tmp_path: Path) -> None:
    (tmp_path / "instructions").mkdir()
    (tmp_path / "instructions" / "Day01_phase1.md").write_text("How many lanterns?\n", encoding="utf-8")
    (tmp_path / "speeds").mkdir()
    earlier = {
        "llm": "gpt4",
        "phase": 1,
        "speedMs": 1250,
        "timestamp": PARAMS["withdraw_record"]["arguments"]["timestamp"],
    }
    (tmp_path / "speeds" / "day01.json").write_text(json.dumps({"day": 1, "entries": [earlier]}))
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "day01.txt").write_text("lantern\n", encoding="utf-8")
    (tmp_path / "attempts").mkdir()
    attempt = PARAMS["finish_attempt"]["arguments"]["attempt"]
    step = {
        "attempt": attempt,
        "outcome": "started",
        "llm": "gpt4",
        "phase": 1,
        "timestamp": "",
        "seconds": 0,
    }
    (tmp_path / "attempts" / "day01.jsonl").write_text(json.dumps(step) + "\n")
    said = {}
    for name in in_order("aoc"):
        done = subprocess.run(
            [COMMAND, *shlex.split(LINES[name])[1:]],
            env={**os.environ, "AOC_DATA_DIR": str(tmp_path), "PYTHONIOENCODING": "utf-8"},
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said[name] = done.stdout

    assert "How many lanterns?" in said["fetch_instruction"]
    assert said["record_speed"] == "Recorded gpt4 Day 1 Phase 1: 1250ms (avg: 1250ms)\n"
    assert "gpt4" in said["speed_history"]


def test_a_document_that_was_changed_by_hand_is_noticed_and_mended(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    page = tmp_path / "docs" / "configuration.md"
    page.write_text(CONFIGURATION.replace("| `3000` |", "| `3001` |"), encoding="utf-8")

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        script = [sys.executable, str(tmp_path / "docs" / "generate.py"), *options]
        return subprocess.run(script, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False)

    found = run("--check")
    written = run()
    found_again = run("--check")

    assert (found.returncode, written.returncode, found_again.returncode) == (1, 0, 0), found.stderr
    assert "-| `MCP_SERVER_PORT` | `3001` |" in found.stdout
    assert "+| `MCP_SERVER_PORT` | `3000` |" in found.stdout
    assert "make docs" in found.stdout
    assert page.read_text(encoding="utf-8") == CONFIGURATION
    assert (tmp_path / ".env.example").read_text(encoding="utf-8") == ENV_EXAMPLE
