"""`bridgehead install` as a person meets it: what it says, what it lists, what it refuses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridgehead.install.clients import BY_ID
from tests.support.waiting import PATIENCE

from .desk import CONFIGURATIONS, Desk, everything, servers

RIGHT = "Usage: bridgehead install [CLIENT [BRIDGE ...]] [options]\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["emacs"], f"Unknown client 'emacs'. Valid values are {', '.join(('all', *BY_ID))}.\n"),
        (["crusor"], "Unknown client 'crusor'. Did you mean 'cursor'?\n"),
        (["cursor", "doom"], "Unknown bridge 'doom'. Valid values are aoc, bitburner, mercury.\n"),
        (["zed", "--scope", "project"], "Zed has only --scope user"),
        (["mcp.json", "--scope", "user"], "mcp.json has only --scope project"),
        (["cursor", "aoc", "--no-token"], "--no-token goes with --url"),
        (["cursor", "--name", "x"], "--name takes letters, digits, - and _, and goes with one bridge"),
        (
            ["cursor", "aoc", "--name", "a b"],
            "--name takes letters, digits, - and _, and goes with one bridge",
        ),
        (["cursor", "--url", "bridges.example.com"], "--url takes an address such as"),
        (["cursor", "--url", "https://[x"], "--url takes an address such as"),
        (["cursor", "--url", "https://x:99999"], "--url takes an address such as"),
        (["cursor", "--token-env", "sk-1234"], "--token-env takes the name of an environment variable"),
        (["cursor", "--frobnicate"], "unrecognized arguments: --frobnicate"),
    ],
)
def test_wrong_usage_is_one_line_that_says_what_would_be_right(
    desk: Desk, arguments: list[str], reason: str
) -> None:
    said = desk.install(*arguments)

    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1)
    assert said.err.startswith(f"bridgehead install: {reason}")
    assert said.err.endswith(RIGHT) or said.err.endswith(f"{reason}")
    assert everything(desk.home) == {}


def test_without_a_name_nothing_is_written_and_the_bridges_are_offered(desk: Desk) -> None:
    said = desk.type("cursor")

    assert (said.status, desk.cursor.exists()) == (2, False)
    assert "Choose from " in said.err
    assert "`bridgehead install cursor all` adds all of them." in said.err


@pytest.mark.parametrize(("found", "example"), [((), "cursor"), ((".codex",), "codex")])
def test_without_a_client_one_that_is_found_is_offered(
    desk: Desk, found: tuple[str, ...], example: str
) -> None:
    for folder in found:
        (desk.home / folder).mkdir()
    said = desk.type()

    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1)
    assert (
        f"Found on this machine: {example if found else 'none'}. `bridgehead install {example} aoc`"
        in said.err
    )


@pytest.mark.parametrize(("typed", "status"), [("cursor", 0), ("", 2), ("crusor", 2)])
def test_at_a_terminal_the_client_is_asked_for(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, typed: str, status: int
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda question: "aoc" if "all" in question else typed)

    assert desk.type().status == status
    assert desk.cursor.exists() is (status == 0)


def test_the_end_of_the_input_writes_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def end(_question: str) -> str:
        raise EOFError

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", end)

    assert (desk.type("cursor").status, desk.cursor.exists()) == (2, False)


def test_a_remote_server_is_to_be_checked_next(desk: Desk) -> None:
    said = desk.install("cursor", "--url", "https://bridges.example.com")

    assert said.out.endswith(
        "\nNext:\n  `bridgehead doctor https://bridges.example.com` checks the connection.\n"
    )


def test_at_a_terminal_the_bridges_are_asked_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _question: "aoc")

    assert desk.type("cursor").status == 0
    assert [*servers(desk.cursor)] == ["aoc"]


@pytest.mark.parametrize(
    "words", [["bitburner", "cursor"], ["aoc", "bitburner", "cursor"], ["cursor", "aoc"]]
)
def test_client_and_bridges_may_be_typed_in_any_order(desk: Desk, words: list[str]) -> None:
    assert desk.type(*words).status == 0
    assert {*servers(desk.cursor)} == {*words} - {"cursor"}


def test_at_a_terminal_a_budget_is_asked_for_once_and_put_into_the_entry(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = ["much", "2"]
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _question: answers.pop(0))

    said = desk.type("cursor", "mercury")
    desk.type("cursor", "mercury")  # it is in the file now
    desk.type("codex", "mercury", environment={"MERCURY_BUDGET_USD": "5"})
    monkeypatch.setattr("builtins.input", lambda _question: "")
    desk.type("gemini", "mercury")

    assert answers == []
    assert "Expected a number" in said.out
    assert servers(desk.cursor)["mercury"]["env"] == {"MERCURY_BUDGET_USD": "2"}
    assert "BUDGET" not in (desk.home / ".gemini/settings.json").read_text(encoding="utf-8")


def test_a_client_that_does_not_get_a_secret_is_not_called_ready(desk: Desk) -> None:
    said = desk.type("claude-desktop", "mercury", environment={"MERCURY_API_KEY": "sk_1"})

    assert "run `bridgehead install claude-desktop mercury --write-secrets`" in said.out
    assert "Ask your agent" not in said.out


def test_all_bridges_are_installed_where_all_are_named(desk: Desk) -> None:
    said = desk.install("cursor")

    assert list(servers(desk.cursor)) == ["aoc", "bitburner", "mercury"]
    assert [line.split()[1] for line in said.out.splitlines()[1:4]] == ["added"] * 3
    assert "MERCURY_API_KEY is not set" in said.out
    assert "HTTPS_PROXY" not in said.out


def test_it_ends_with_what_is_left_to_do_for_each_bridge(desk: Desk) -> None:
    said = desk.install("cursor")

    assert said.out.endswith(
        "\nNext:\n  bitburner: Press Connect in the game.\n  `bridgehead doctor` checks all of it.\n"
    )
    assert "BITBURNER_RPC_URL" not in said.out
    assert "Next:" not in desk.install("cursor").out


def test_all_clients_that_are_found_are_changed_and_a_broken_file_stops_no_other(desk: Desk) -> None:
    for name in (".cursor", ".gemini", ".claude"):
        (desk.home / name).mkdir()
    (desk.home / ".gemini" / "settings.json").write_text("{,}", encoding="utf-8")

    said = desk.install("all", "aoc")

    assert said.status == 1
    assert [*servers(desk.cursor), *servers(desk.home / ".claude.json")] == ["aoc", "aoc"]
    assert said.err.startswith("Gemini CLI: ")
    assert (desk.home / ".gemini" / "settings.json").read_text(encoding="utf-8") == "{,}"


def test_all_without_a_client_says_so(desk: Desk) -> None:
    said = desk.install("all")

    assert (said.status, said.out) == (1, "")
    assert "No MCP client was found on this machine." in said.err


def test_gemini_is_told_about_trust(desk: Desk) -> None:
    assert "only in folders that it trusts" in desk.install("gemini", "aoc").out


def test_options_and_bridges_may_be_mixed(desk: Desk) -> None:
    said = desk.install("cursor", "--dry-run", "aoc", "--name", "puzzles", environment={"AOC_YEAR": "2024"})

    assert said.status == 0
    assert '+    "puzzles": {' in said.out


def test_a_server_is_given_what_is_set_and_not_the_default(desk: Desk) -> None:
    environment = {"AOC_DATA_DIR": "puzzles", "AOC_YEAR": "2025", "PATH": "/bin", "MCP_TRANSPORT": "http"}

    desk.install("cursor", environment=environment)

    written = servers(desk.cursor)
    assert written["aoc"]["env"] == {"AOC_DATA_DIR": str(Path.cwd() / "puzzles")}
    assert "env" not in written["mercury"]
    assert "env" not in written["bitburner"]


def test_a_setting_with_which_no_server_would_start_is_refused(desk: Desk) -> None:
    said = desk.install("cursor", environment={"AOC_YEAR": "1999"})

    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("bridgehead install: AOC_YEAR is '1999'")
    assert everything(desk.home) == {}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["claude-desktop", "--url", "https://b.example.com"], "Claude Desktop takes no remote servers"),
        (["cursor", "aoc", "--url", "https://b.example.com/mercury/mcp"], "is one server, and not aoc"),
        (["zed", "--url", "https://b.example.com", "--write-secrets"], "BRIDGEHEAD_TOKEN is not set"),
        (["cursor", "--command", "no-such-program-here"], "is not a program on this machine"),
        (["cursor", "--command", "'"], "is not a program on this machine"),
        (["cursor", "--command", ""], "is not a program on this machine"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(
    desk: Desk, arguments: list[str], sentence: str
) -> None:
    said = desk.install(*arguments)

    assert (said.status, said.out, said.err.count("\n")) == (1, "", 1)
    assert sentence in said.err
    assert everything(desk.home) == {}


def test_a_dry_run_of_nothing_says_so(desk: Desk) -> None:
    desk.install("cursor", "aoc")

    said = desk.install("cursor", "aoc", "--dry-run")

    assert said.out == f"{desk.cursor}: nothing would change\n"


def test_the_servers_of_others_are_not_listed_as_ours(desk: Desk) -> None:
    path = desk.home / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_bytes((CONFIGURATIONS / "gemini.json").read_bytes())
    (desk.home / ".cursor").mkdir()
    desk.cursor.write_text('{"mcpServers": {"odd": null, "x": {"url": "http://[y"}}}', encoding="utf-8")

    listed = desk.install("--list").out

    assert listed.count(" found      no bridges") == 2


def test_the_list_shows_who_is_here_and_what_each_has(desk: Desk) -> None:
    desk.install("cursor", "aoc", "mercury")
    desk.install("cursor", "aoc", "--scope", "project")
    (desk.home / ".claude").mkdir()
    (desk.home / ".gemini").mkdir()
    (desk.home / ".gemini" / "settings.json").write_text("{,}", encoding="utf-8")
    (desk.home / ".codex").mkdir()
    (desk.home / ".codex" / "config.toml").write_bytes(b"\xff")

    lines = {line[:24].strip(): line for line in desk.install("--list").out.splitlines()}

    assert "aoc, mercury" in lines["cursor"]
    assert str(desk.cursor) in lines["cursor"]
    assert "found      aoc " in lines["cursor (project)"]
    assert "found      no bridges" in lines["claude-code"]
    assert "broken at 1:2" in lines["gemini"]
    assert "this is not UTF-8" in lines["codex"]
    assert all(" not found" in lines[client] for client in ("claude-desktop", "vscode", "windsurf", "zed"))


def test_the_entrance_reads_the_home_of_its_environment(tmp_path: Path) -> None:
    program = "import os, sys; from bridgehead.install import command; command.main(sys.argv[1:], os.environ)"
    (tmp_path / ".cursor").mkdir()

    done = subprocess.run(
        [sys.executable, "-c", program, "--list"],
        env={**os.environ, "HOME": str(tmp_path), "USERPROFILE": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert str(tmp_path / ".cursor" / "mcp.json") in done.stdout
