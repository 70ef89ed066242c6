"""A file with a bridge is enough for every command that names a bridge."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support import endable
from tests.support.host_command import Command, add_token
from tests.support.person import COMMAND, PATIENCE, Person
from tests.test_plugin_bridge import ROOT, ask

SERVER = """
from bridgehead.mcp import Arguments, Bridge, Context

weather = Bridge("weather", "1.0.0", title="Weather")


class City(Arguments):
    city: str


@weather.tool("The weather of a city.", read_only=True)
def get_weather(args: City, ctx: Context[None]) -> str:
    return f"It rains in {args.city}."
"""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    somebody = Person(tmp_path)
    (somebody.home / "server.py").write_text(SERVER, encoding="utf-8")
    return somebody


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["tools", "server.py"], "get_weather"),
        (["tools", "server.py", "--json"], '"name": "get_weather"'),
        (["tools", "server"], "get_weather"),
        (["call", "server.py", "get_weather", "city=Lima"], "It rains in Lima."),
        (["call", "./server.py:weather", "get_weather", "city=Lima"], "It rains in Lima."),
        (["install", "cursor", "server.py"], "weather  added"),
        (["dev", "server.py", "--inspect"], "server.py --quiet"),
        (["token", "add", "ann", "--bridges", "server.py"], ""),
        (["completion", "words", "--", "call"], "server.py\n"),
        (["completion", "words", "--", "call", "server.py"], "get_weather\n"),
    ],
)
def test_a_command_takes_it(person: Person, words: list[str], shown: str) -> None:
    done = person.run(*words)

    assert done.returncode == 0, done.stderr
    assert shown in done.stdout


NOT_A_BRIDGE = "empty.py has no Bridge or Manifest at its top level, only make (function)."


@pytest.mark.parametrize("words", [["tools"], ["call"], ["install", "cursor"], ["serve"], []])
def test_a_file_without_a_bridge_is_refused_in_one_line(person: Person, words: list[str]) -> None:
    (person.home / "empty.py").write_text("def make(): ...\n", encoding="utf-8")

    done = person.run(*words, "empty.py", *(["get_weather"] if words == ["call"] else []))

    assert done.returncode == 2
    assert NOT_A_BRIDGE in done.stderr
    assert done.stderr.count("\n") == 1


def test_dev_waits_for_a_better_file(person: Person) -> None:
    (person.home / "empty.py").write_text("def make(): ...\n", encoding="utf-8")
    with subprocess.Popen(
        [COMMAND, "dev", "empty.py"],
        env=person.environment(),
        cwd=person.home,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stdin is not None and process.stderr is not None  # noqa: PT018
        # Its child says so. With its input closed, dev would end a child that has not started yet.
        assert any(NOT_A_BRIDGE in line for line in process.stderr)
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_the_path_alone_serves_it_over_stdio(person: Person) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    done = subprocess.run(
        [COMMAND, str(person.home / "server.py")],
        env=person.environment(),
        input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )

    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "weather"


def test_it_is_served_over_http_beside_others(person: Person) -> None:
    secret = add_token(person.state, "ann", bridges=("weather",))
    with subprocess.Popen(
        [*endable.words_for("bridgehead"), "serve", "server.py", "aoc", "--port", "0"],
        env=person.environment(PYTHONPATH=str(ROOT), LOG_FORMAT="json"),
        cwd=person.home,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        command = Command(process)
        try:
            url = command.wait_for("serving")["url"].replace("/mcp", "/weather/mcp")
            called = ask(url, secret, "tools/call", {"name": "get_weather", "arguments": {"city": "Lima"}})
        finally:
            command.end()

    assert called["content"][0]["text"] == "It rains in Lima."


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["server.py", "--bridges", "aoc"], "name the bridges either as arguments or with --bridges"),
        (["mercuri"], "Unknown bridge 'mercuri'. Did you mean 'mercury'?"),
    ],
)
def test_serve_refuses_what_is_not_clear(person: Person, words: list[str], told: str) -> None:
    done = person.run("serve", *words)

    assert done.returncode == 2
    assert told in done.stderr
