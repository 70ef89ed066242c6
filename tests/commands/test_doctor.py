"""Doctor: one screen for everything, each problem with what to do, and a status that a script can use."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bridgehead.commands import doctor
from bridgehead.mercury.simulator import Simulator
from bridgehead.runtime.findings import Finding
from tests.support.person import Done, Person

NOWHERE = str(Path("/nowhere").absolute())
"""With a drive, on Windows."""


def findings(done: Done) -> dict[str, dict[str, dict[str, Any]]]:
    assert done.stderr == ""
    return {title: {one["what"]: one for one in found} for title, found in json.loads(done.stdout).items()}


def test_puzzles_that_are_not_there_yet_are_a_note_and_nothing_is_wrong(person: Person) -> None:
    done = person.run("doctor", "aoc", "--json")

    found = findings(done)
    assert done.returncode == 0
    assert list(found) == ["bridgehead", "aoc", "clients"]
    assert found["bridgehead"]["offered"]["text"] == "every tool"
    assert "msgspec" in found["bridgehead"]["version"]["text"]
    assert "AOC_DATA_DIR=" in found["aoc"]["settings"]["text"]
    assert found["aoc"]["puzzles"]["verdict"] == "right"
    assert found["aoc"]["records"]["verdict"] == "note"
    assert found["aoc"]["files"]["text"] == "none to read yet"
    assert found["clients"]["clients"]["advice"] == "Run `bridgehead install`."


async def test_a_part_is_shown_as_soon_as_it_is_checked(person: Person) -> None:
    shown: list[tuple[str, str]] = []

    def show(title: str, findings: list[Finding], following: str) -> None:
        assert findings
        shown.append((title, following))

    await doctor.examine(["aoc", "host"], person.environment(), show=show)

    assert shown == [("bridgehead", "aoc"), ("aoc", "host"), ("host", "clients"), ("clients", "clients")]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_in_a_pipe_a_finding_is_a_line_in_any_encoding(person: Person, encoding: str) -> None:
    deep = person.home / ("a-folder-with-a-long-name/" * 8)
    done = person.run(
        "doctor", "bitburner", COLUMNS="80", BRIDGEHEAD_STATE_DIR=str(deep), PYTHONIOENCODING=encoding
    )

    assert f" {deep}/bitburner, made when it is first needed\n" in done.stdout.replace("\\", "/")
    assert ("→ " in done.stdout, "-> " in done.stdout) == (encoding == "utf-8", encoding != "utf-8")
    assert "?" not in done.stdout


def test_each_setting_says_where_it_comes_from(person: Person) -> None:
    (person.home / ".env").write_text("AOC_YEAR=2024\n", encoding="utf-8")
    text = findings(person.run("doctor", "aoc", "--json"))["aoc"]["settings"]["text"]

    assert "AOC_YEAR=2024 (from .env)" in text
    assert f"AOC_DATA_DIR={person.puzzles} (from the environment)" in text
    assert "at their defaults" in text


def test_a_broken_file_is_wrong(person: Person) -> None:
    (person.puzzles / "speeds").mkdir()
    for day in range(1, 6):
        (person.puzzles / "speeds" / f"day{day:02}.json").write_text("{", encoding="utf-8")
    done = person.run("doctor", "aoc", "--json")

    broken = [one for one in json.loads(done.stdout)["aoc"] if one["what"] == "files"]
    assert done.returncode == 1
    assert [one["verdict"] for one in broken] == ["wrong"] * 3
    assert broken[0]["advice"] == "Run `bridgehead aoc check`."


def test_a_wrong_setting_is_wrong_and_the_others_are_looked_at_all_the_same(person: Person) -> None:
    done = person.run("doctor", "aoc", "mercury", "--json", AOC_YEAR="soon", BRIDGEHEAD_READ_ONLY="perhaps")

    found = findings(done)
    assert done.returncode == 1
    assert "AOC_YEAR is 'soon'" in found["aoc"]["settings"]["text"]
    assert list(found["aoc"]) == ["settings"]
    assert "BRIDGEHEAD_READ_ONLY is 'perhaps'" in found["bridgehead"]["offered"]["text"]
    assert found["mercury"]["state"]["verdict"] == "right"
    assert "There is no API key" in found["mercury"]["key"]["text"]


def test_what_is_offered_is_told(person: Person) -> None:
    found = findings(person.run("doctor", "aoc", "--json", BRIDGEHEAD_READ_ONLY="yes"))

    assert found["bridgehead"]["offered"]["text"] == "what passes BRIDGEHEAD_READ_ONLY=1"


async def test_an_api_that_answers_is_right(person: Person, mercury: dict[str, str]) -> None:
    done = await person.runs("doctor", "mercury", "--json", **mercury)

    found = findings(done)["mercury"]
    assert done.returncode == 0
    assert "the key is accepted; 7 models" in found[f"API at {mercury['MERCURY_API_URL']}"]["text"]
    assert found["model"]["text"] == "mercury-2"
    assert mercury["MERCURY_API_KEY"] not in done.stdout


async def test_a_model_that_is_not_there_is_wrong(
    person: Person, api: Simulator, mercury: dict[str, str]
) -> None:
    done = await person.runs("doctor", "mercury", "--json", **(mercury | {"MERCURY_MODEL": "mercury-9"}))

    assert done.returncode == 1
    assert findings(done)["mercury"]["model"]["advice"] == "Set MERCURY_MODEL."
    assert len(api.requests) == 1


def test_without_a_game_its_doctor_does_not_wait_long(person: Person) -> None:
    done = person.run("doctor", "bitburner")

    assert done.returncode == 1
    assert "none connected within 2 s" in done.stdout
    assert done.stdout.splitlines()[0] == "bridgehead"


@pytest.mark.parametrize(("content", "verdict"), [("{}", "note"), ("{", "wrong"), ("installed", "right")])
def test_each_client_that_is_there_is_looked_at(person: Person, content: str, verdict: str) -> None:
    (person.home / ".cursor").mkdir()
    file = person.home / ".cursor" / "mcp.json"
    if content == "installed":
        assert person.run("install", "cursor", "all").returncode == 0
    else:
        file.write_text(content, encoding="utf-8")
    done = person.run("doctor", "aoc", "--json")

    found = findings(done)["clients"]["Cursor"]
    assert (found["verdict"], str(file) in found["text"]) == (verdict, True)
    assert done.returncode == (verdict == "wrong")
    if verdict == "note":
        assert found["advice"] == "Run `bridgehead install cursor`."


def test_the_hosts_settings_are_shown_with_where_they_come_from(person: Person) -> None:
    (person.home / ".env").write_text("MCP_SERVER_PORT=8080\n", encoding="utf-8")
    found = findings(person.run("doctor", "host", "--json", BRIDGEHEAD_BRIDGES="aoc,mercury"))

    assert list(found) == ["bridgehead", "host", "clients"]
    assert "MCP_SERVER_PORT=8080 (from .env)" in found["host"]["settings"]["text"]
    assert "BRIDGEHEAD_BRIDGES=aoc,mercury (from the environment)" in found["host"]["settings"]["text"]
    assert "at their defaults" in found["host"]["settings"]["text"]
    assert found["host"]["would serve"]["text"] == "aoc, mercury at http://localhost:8080/mcp"
    assert found["host"]["tokens"]["text"].startswith("not needed")


def test_a_host_that_would_not_start_without_a_token_is_told_of_it(person: Person) -> None:
    team = {"MCP_SERVER_HOST": "0.0.0.0"}  # noqa: S104 - it is only looked at
    before = person.run("doctor", "host", "--json", **team)
    assert person.run("token", "add", "alice").returncode == 0
    after = findings(person.run("doctor", "host", "--json", **team))["host"]

    assert before.returncode == 0
    assert "bridgehead token add NAME" in findings(before)["host"]["tokens"]["advice"]
    assert after["would serve"]["text"] == "all bridges at http://0.0.0.0:3000/mcp"
    assert after["tokens"]["text"].startswith("everyone needs one; 1 in ")


@pytest.mark.parametrize(
    ("name", "value"),
    [("MCP_SERVER_PORT", "many"), ("BRIDGEHEAD_TLS_CERT", NOWHERE), ("BRIDGEHEAD_BRIDGES", "moon")],
)
def test_a_host_with_a_wrong_setting_is_wrong(person: Person, name: str, value: str) -> None:
    done = person.run("doctor", "host", "--json", **{name: value})

    assert done.returncode == 1
    assert findings(done)["host"]["settings"]["text"].startswith(f"{name} is '{value}': expected ")


def test_a_bridge_that_is_not_there_is_one_line(person: Person) -> None:
    done = person.run("doctor", "moon")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("bridgehead doctor: Unknown bridge 'moon'. Valid values are ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("url", ["https://", "http://[", "http://x:99999/mcp", "http://a b/"])
def test_an_address_that_is_none_is_one_line(person: Person, url: str) -> None:
    done = person.run("doctor", url)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"bridgehead doctor: {url!r} is not an address. Write it as https://bridges.example.com/mcp.\n"
    )


def test_a_bridge_and_an_address_are_not_taken_together(person: Person) -> None:
    done = person.run("doctor", "http://127.0.0.1:9", "aoc")

    assert (done.returncode, done.stdout) == (2, "")
    assert "URLs and bridges cannot be checked together. Run it once for each." in done.stderr


def test_a_bridge_of_ones_own_is_checked_by_its_file(person: Person) -> None:
    text = 'from bridgehead.mcp import Bridge\nmine = Bridge("greeter", "1")\n'
    (person.home / "server.py").write_text(text, encoding="utf-8")
    (person.home / "broken.py").write_text("1 / 0\n", encoding="utf-8")
    done, broken = person.run("doctor", "server.py"), person.run("doctor", "broken.py", "--json")

    assert (done.returncode, done.stderr) == (0, "")
    assert "settings it has none" in done.stdout
    assert broken.returncode == 1
    assert "ZeroDivisionError" in findings(broken)["broken.py"]["file"]["text"]
    assert "There is no file" in person.run("doctor", "missing.py").stderr


def test_a_bridge_that_nobody_uses_is_no_problem_and_the_last_line_says_how_it_stands(person: Person) -> None:
    done = person.run("doctor", BITBURNER_LISTEN="")

    assert done.returncode == 0
    assert "There is no API key for Mercury" in done.stdout
    assert "✗" not in done.stdout
    last = "No problems found. The lines with → say what is not set up yet."
    assert done.stdout.splitlines()[-1] == last


def test_a_bridge_that_is_asked_about_has_its_problems(person: Person) -> None:
    done = person.run("doctor", "mercury")

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "1 problem. The lines with → say how to fix them."


def test_nothing_is_cut_off_in_a_narrow_terminal(person: Person) -> None:
    done = person.run("doctor", "aoc", COLUMNS="60", FORCE_COLOR="1")
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", done.stdout).replace("\r", "\n")

    lines = [line for line in shown.splitlines() if "Checking" not in line]
    assert max(map(len, lines)) <= 60
    assert not any("…" in line for line in lines)
