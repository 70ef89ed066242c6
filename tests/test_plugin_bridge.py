"""A bridge of another distribution, installed by pip, is in everything that the built-in ones are in."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.support import endable
from tests.support.host_command import Command, add_token
from tests.support.person import COMMAND, PATIENCE, Done, Person
from tests.support.plugins import install_weather, write_distribution

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_weather(tmp_path_factory.mktemp("site"))


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def run(person: Person, site: Path, *words: str, **settings: str) -> Done:
    return person.run(*words, PYTHONPATH=str(site), **settings)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--help"], "weather     from bridgehead-weather 1.2.0"),
        (["tools"], "get_weather"),
        (["tools", "weather", "--json"], '"name": "get_weather"'),
        (["call", "weather", "get_weather", "city=Lima"], "It rains in Lima."),
        (["demo", "weather"], "The weather: rain."),
        (["weather", "today"], "rain, this year"),
        (["install", "cursor", "weather"], "weather  added"),
        (["token", "add", "ann", "--bridges", "weather"], ""),
        (["completion", "words", "--"], "weather\n"),
        (["completion", "words", "--", "call", "weather"], "get_weather\n"),
        (["completion", "words", "--", "weather", "today", "--unit"], "kelvin\n"),
        (["completion", "words", "--", "serve", "--bridges"], "weather\n"),
    ],
)
def test_a_command_knows_it(person: Person, site: Path, words: list[str], shown: str) -> None:
    done = run(person, site, *words, AOC_YEAR="2020")

    assert done.returncode == 0, done.stderr
    assert shown in done.stdout


def test_the_doctor_hands_it_only_what_it_has_declared(person: Person, site: Path) -> None:
    done = run(person, site, "doctor", "weather", "--json", AOC_YEAR="2020", WEATHER_CITY="Oslo")

    assert json.loads(done.stdout)["weather"][0]["text"] == "WEATHER_CITY"


def test_a_client_is_served_over_stdio_although_the_plugin_prints(person: Person, site: Path) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    done = subprocess.run(
        [COMMAND, "weather"],
        env=person.environment(PYTHONPATH=str(site)),
        input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )

    (line,) = done.stdout.splitlines()
    assert json.loads(line)["result"]["serverInfo"]["name"] == "weather"
    assert "A plugin may print" in done.stderr


def test_a_client_is_served_over_http_where_the_settings_name_it(person: Person, site: Path) -> None:
    secret = add_token(person.state, "ann")
    with serving(person, site, BRIDGEHEAD_BRIDGES="weather") as url:
        listed = ask(url, secret, "tools/list", {})
        called = ask(url, secret, "tools/call", {"name": "get_weather", "arguments": {"city": "Lima"}})

    assert [tool["name"] for tool in listed["tools"]] == ["get_weather"]
    assert called["content"][0]["text"] == "It rains in Lima."


def test_it_is_not_served_over_http_where_the_settings_do_not_name_it(person: Person, site: Path) -> None:
    secret = add_token(person.state, "ann")
    with serving(person, site, BRIDGEHEAD_BRIDGES="aoc") as url:
        names = [tool["name"] for tool in ask(url, secret, "tools/list", {})["tools"]]

    assert "fetch_instruction" in names
    assert "get_weather" not in names


@contextmanager
def serving(person: Person, site: Path, **settings: str) -> Iterator[str]:
    """Run `bridgehead serve`, and give the URL that it logs."""
    with subprocess.Popen(
        [*endable.words_for("bridgehead"), "serve", "--port", "0"],
        env=person.environment(PYTHONPATH=f"{site}{os.pathsep}{ROOT}", LOG_FORMAT="json", **settings),
        cwd=person.home,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        command = Command(process)
        try:
            yield command.wait_for("serving")["url"]
        finally:
            command.end()


def ask(url: str, secret: str, method: str, params: dict[str, object]) -> dict[str, Any]:
    """Make one request of the stateless era."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    sent = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    headers = {
        "Authorization": f"Bearer {secret}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        **({"Mcp-Name": str(params["name"])} if "name" in params else {}),
    }
    with urlopen(Request(url, json.dumps(sent).encode(), headers), timeout=PATIENCE) as response:  # noqa: S310
        result: dict[str, Any] = json.load(response)["result"]
    return result


def test_the_documents_of_its_settings_and_tools_are_made_from_its_code(site: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--bridge", "weather"],
        env={"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )

    assert "| `WEATHER_KEY` |  | a text | The key of the service. **Secret.** | weather |" in done.stdout
    assert "## get_weather" in done.stdout


def test_one_that_is_broken_is_named_by_the_doctor_and_harms_nobody(person: Person, tmp_path: Path) -> None:
    broken = write_distribution(tmp_path / "broken", "rotten", "rotten", "import nowhere_to_be_found")

    told = run(person, broken, "doctor", "rotten", "--json")
    listed = run(person, broken, "tools")
    installed = run(person, broken, "install", "cursor", "all")

    (finding,) = json.loads(told.stdout)["rotten"]
    assert finding["text"] == (
        "The bridge rotten (rotten 1.0) cannot be loaded: "
        "ModuleNotFoundError: No module named 'nowhere_to_be_found'."
    )
    assert (told.returncode, listed.returncode, installed.returncode) == (1, 0, 0)
    assert "fetch_instruction" in listed.stdout
    assert "aoc" in installed.stdout
    assert run(person, broken, "rotten").stderr.startswith(
        "bridgehead rotten: The bridge rotten (rotten 1.0)"
    )


def test_one_with_a_broken_module_is_named_by_the_doctor_and_its_commands_are_not_completed(
    person: Person, tmp_path: Path
) -> None:
    code = """
from bridgehead.aoc.bridge import manifest as aoc
import msgspec
manifest = msgspec.structs.replace(aoc, name="halved", package="halved_parts")
"""
    folder = write_distribution(tmp_path / "halved", "halved", "halved", code)
    (folder / "halved_parts").mkdir()
    for name in ("doctor", "commands"):
        (folder / "halved_parts" / f"{name}.py").write_text("import nowhere_to_be_found", encoding="utf-8")

    told = run(person, folder, "doctor", "halved", "--json")
    completed = run(person, folder, "completion", "words", "--", "halved")
    typed = run(person, folder, "halved", "today")

    (finding,) = json.loads(told.stdout)["halved"]
    assert finding["text"].startswith("halved_parts.doctor cannot be imported: ModuleNotFoundError")
    assert (completed.returncode, completed.stdout) == (0, "")
    assert typed.stderr.startswith("bridgehead halved: halved_parts.commands cannot be imported")


def test_two_with_one_name_are_named_by_the_doctor(person: Person, tmp_path: Path) -> None:
    folder = write_distribution(tmp_path / "two", "one", "storm", "")
    write_distribution(folder, "two", "storm", "")

    found = json.loads(run(person, folder, "doctor", "aoc", "--json").stdout)["bridgehead"]

    assert [one["text"].split(" is refused")[0] for one in found if one["what"] == "plugin"] == [
        "The bridge storm of one 1.0",
        "The bridge storm of two 1.0",
    ]
