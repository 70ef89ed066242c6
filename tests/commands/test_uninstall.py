"""Uninstall: lists all that was made for a user, and removes that and nothing of theirs."""

import json
from pathlib import Path

import pytest

from bridgehead.commands import uninstall
from tests.support.person import Person

OTHERS = {"mcpServers": {"weather": {"command": "weather"}}, "theme": "dark"}


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def used(person: Person) -> Person:
    """Somebody with a client of their own who has used each part once."""
    (person.home / ".cursor").mkdir()
    (person.home / ".cursor" / "mcp.json").write_text(json.dumps(OTHERS), encoding="utf-8")
    return person


def use(person: Person) -> None:
    for words in (
        ["install", "cursor", "aoc", "bitburner"],
        ["token", "add", "alice"],
        ["call", "bitburner", "connection_status"],
        ["call", "aoc", "record_speed", "day=1", "phase=1", "llm_name=fox", "speed_ms=5"],
    ):
        done = person.run(*words, AOC_DATA_DIR="", BITBURNER_CONNECT_WAIT_MS="0")
        assert (done.returncode, done.stdout != "") == (0, True), done


def test_everything_that_was_made_is_listed_and_stays(used: Person) -> None:
    use(used)
    before = tree(used.home)

    done = used.run("uninstall", AOC_DATA_DIR="")

    assert done.returncode == 0
    assert "Cursor: aoc, bitburner" in done.stdout
    assert "bridgehead install cursor --remove" in done.stdout
    assert "speed records" in done.stdout
    assert "tokens of callers" in done.stdout
    assert [path for path in before if path.endswith(".bak") and path not in done.stdout] == []
    assert tree(used.home) == before


def test_with_everything_the_home_is_as_it_was(used: Person) -> None:
    before = tree(used.home)
    use(used)
    assert tree(used.home) != before

    done = used.run("uninstall", "--everything", "--yes", AOC_DATA_DIR="")

    assert (done.returncode, done.stderr) == (0, "")
    assert {**tree(used.home), ".cursor/mcp.json": b""} == {**before, ".cursor/mcp.json": b""}
    assert json.loads((used.home / ".cursor" / "mcp.json").read_text(encoding="utf-8")) == OTHERS
    assert "nothing of Bridgehead" in used.run("uninstall", AOC_DATA_DIR="").stdout


def test_without_a_terminal_nothing_goes_without_a_yes(used: Person) -> None:
    use(used)
    before = tree(used.home)

    done = used.run("uninstall", "--everything", AOC_DATA_DIR="")

    assert (done.returncode, tree(used.home) == before) == (2, True)
    assert "Add --yes" in done.stderr


@pytest.mark.parametrize(("typed", "is_removed"), [("no", False), ("", False), ("yes", True)])
def test_at_a_terminal_one_question_is_asked(
    used: Person, monkeypatch: pytest.MonkeyPatch, typed: str, *, is_removed: bool
) -> None:
    use(used)
    asked: list[str] = []

    def answer(question: str) -> str:
        asked.append(question)
        return typed

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", answer)
    environment = used.environment(AOC_DATA_DIR="", XDG_DATA_HOME=str(used.home / ".local/share"))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    status = uninstall.main(["--everything"], environment)

    assert (status, len(asked)) == (0, 1)
    assert (used.state / "host" / "tokens.json").exists() is not is_removed


@pytest.mark.parametrize("name", ["AOC_DATA_DIR", "BITBURNER_BACKUP_DIR", "BRIDGEHEAD_TOKENS_FILE"])
def test_what_a_setting_names_stays_even_inside_the_state_directory(used: Person, name: str) -> None:
    part = {"AOC_DATA_DIR": "aoc", "BITBURNER_BACKUP_DIR": "bitburner/mine"}.get(name, "host/mine.json")
    kept = used.state / part
    kept.mkdir(parents=True)
    (kept / "puzzle").write_text("mine", encoding="utf-8")

    done = used.run("uninstall", "--everything", "--yes", **{"AOC_DATA_DIR": "", name: str(kept)})

    assert done.returncode == 0
    assert (kept / "puzzle").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "words",
    [
        ["doctor"],
        ["mercury", "doctor"],
        ["bitburner", "doctor"],
        ["aoc", "doctor"],
        ["tools"],
        ["install", "--list"],
        ["uninstall"],
        ["mercury", "settings"],
    ],
    ids=" ".join,
)
def test_a_command_that_looks_makes_nothing(person: Person, words: list[str]) -> None:
    before = sorted(person.home.rglob("*"))

    done = person.run(*words, AOC_DATA_DIR="")

    assert done.stdout
    assert sorted(person.home.rglob("*")) == before
