"""Completion: what a shell is told, and what it then offers."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bridgehead.commands.completion import words
from tests.support.person import COMMAND, Person
from tests.support.waiting import PATIENCE


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"AOC_DATA_DIR": str(tmp_path), "BRIDGEHEAD_STATE_DIR": str(tmp_path)}


def in_shell(person: Person, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a shell in which the command is found, where the person is at home."""
    environment = person.environment()
    environment["PATH"] = f"{COMMAND.parent}:{environment['PATH']}"
    return subprocess.run(
        command,
        env=environment,
        cwd=person.home,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize(
    ("before", "some"),
    [
        ([], {"aoc", "call", "install", "--version"}),
        (["call"], {"aoc", "mercury", "bitburner"}),
        (["call", "aoc"], {"fetch_instruction", "record_speed"}),
        (["call", "aoc", "record_speed", "day=1"], {"phase=", "llm_name=", "speed_ms="}),
        (["call", "aoc", "record_speed", "day", "=", "1"], {"phase=", "llm_name=", "speed_ms="}),
        (["install"], {"cursor", "--list"}),
        (["install", "cursor"], {"aoc", "--dry-run"}),
        (["install", "cursor", "aoc", "--remove"], {"mercury", "--dry-run"}),
        (["install", "cursor", "--scope"], {"user", "project"}),
        (["serve", "--read-only"], {"--port", "--bridges"}),
        (["serve", "--bridges"], {"aoc", "mercury"}),
        (["token"], {"add", "revoke"}),
        (["token", "add", "me"], {"--days"}),
        (["doctor", "aoc"], {"mercury", "host", "--json"}),
        (["tools"], {"aoc"}),
        (["tools", "aoc"], {"--json"}),
        (["aoc"], {"leaderboard", "plot", "check"}),
        (["aoc", "leaderboard", "--format"], {"csv", "json"}),
        (["bitburner"], {"doctor", "settings", "simulate"}),
        (["completion"], {"bash", "fish", "powershell", "zsh"}),
    ],
)
def test_what_may_follow_is_offered(before: list[str], some: set[str], environment: dict[str, str]) -> None:
    assert some <= set(words(before, environment))


@pytest.mark.parametrize(
    "before",
    [
        *(["moon"], ["call", "moon"], ["call", "moon", "land"], ["call", "aoc", "none"]),
        *(["serve", "--tls-cert"], ["install", "cursor", "--path"], ["aoc", "plot"], ["token", "revoke"]),
    ],
)
def test_where_nothing_is_known_nothing_is_offered(before: list[str], environment: dict[str, str]) -> None:
    assert words(before, environment) == []


def test_what_is_given_is_not_offered_again(environment: dict[str, str]) -> None:
    assert "day=" not in words(["call", "aoc", "record_speed", "day=1"], environment)
    assert "--port" not in words(["serve", "--port", "1"], environment)
    assert "aoc" not in words(["install", "cursor", "aoc"], environment)


def test_tokens_are_offered_to_be_revoked(person: Person) -> None:
    assert person.run("token", "add", "alice").returncode == 0

    assert words(["token", "revoke"], {"BRIDGEHEAD_STATE_DIR": str(person.state)}) == ["alice"]
    assert words(["token", "revoke"], {"MCP_SERVER_PORT": "many"}) == []


def test_a_wrong_setting_only_means_that_no_tool_is_known() -> None:
    assert words(["call", "aoc"], {"AOC_YEAR": "soon"}) == []


@pytest.mark.parametrize(
    "command", [["install"], ["serve"], ["doctor"], ["tools"], ["demo"], ["token", "add"], ["token", "list"]]
)
def test_every_option_of_a_command_is_offered_and_no_other(person: Person, command: list[str]) -> None:
    told = set(re.findall(r"--[a-z-]+", person.run(*command, "--help").stdout))
    if command[0] == "serve":
        told = set(re.findall(r"^  (--[a-z-]+)", person.run("serve", "--help").stdout, re.MULTILINE))

    offered = {*words(command, {}), *words([*command, "x"], {})}
    assert {word for word in offered if word.startswith("--")} == told - {"--help"}


def test_every_command_of_the_help_is_offered(person: Person) -> None:
    told = person.run("--help").stdout

    named = [line.split()[0] for line in told.splitlines() if line[:2] == "  " and line[2:3].isalpha()]
    assert set(words([], {})) - {"--version", "--help"} == set(named) - {"bridgehead"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_a_script_is_one_that_the_shell_can_read(person: Person, shell: str) -> None:
    done = person.run("completion", shell)

    assert (done.returncode, done.stderr) == (0, "")
    assert "bridgehead completion words" in done.stdout
    found = shutil.which(shell)
    if found is not None and shell != "powershell":  # which has no option that only reads
        subprocess.run([found, "-n"], input=done.stdout, text=True, check=True, timeout=PATIENCE)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["bridgehead", "inst"], ["install"]),
        (["bridgehead", "call", "aoc", "rec"], ["record_speed"]),
        (
            ["bridgehead", "call", "aoc", "record_speed", "day", "=", "1", ""],
            ["phase=", "llm_name=", "speed_ms=", "measure=", "--json"],
        ),
        (["bridgehead", "call", "aoc", "record_speed", "day", "="], []),
        (["bridgehead", "moon", ""], []),
    ],
)
def test_bash_offers_what_fits(person: Person, typed: list[str], offered: list[str]) -> None:
    script = person.run("completion", "bash").stdout
    program = (
        f'{script}\nCOMP_WORDS=("$@"); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n_bridgehead\n'
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )

    done = in_shell(person, "bash", "-c", program, "bash", *typed)

    assert (done.stdout.split(), done.stderr) == (offered, "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("bridgehead inst", {"install"}),
        ("bridgehead call aoc record_speed da", {"day="}),
        ("bridgehead serve --tls-cert puz", {"puzzles/"}),
    ],
)
def test_fish_offers_what_fits(person: Person, typed: str, offered: set[str]) -> None:
    script = person.run("completion", "fish").stdout

    done = in_shell(person, "fish", "--no-config", "-c", f"{script}\ncomplete -C '{typed}'")

    assert {line.split("\t")[0] for line in done.stdout.splitlines()} == offered


def test_a_shell_that_is_not_known_is_one_line(person: Person) -> None:
    done = person.run("completion", "tcsh")

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
