"""`bridgehead install` as a person meets it: what it says, what it refuses, what it leaves."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .desk import CONFIGURATIONS, Desk, everything
from .stand_ins import KEY

RIGHT = "right would be: bridgehead install CLIENT [BRIDGE ...] [options], or bridgehead install --list\n"


def cursor(desk: Desk) -> Path:
    return desk.home / ".cursor" / "mcp.json"


def servers(path: Path) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]
    return found


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "no client given"),
        (["emacs"], "argument CLIENT: invalid choice: 'emacs' (choose from"),
        (["cursor", "doom"], "'doom' is no bridge; there are bitburner, aoc, mercury"),
        (["zed", "--scope", "project"], "Zed has only --scope user"),
        (["mcp.json", "--scope", "user"], "mcp.json has only --scope project"),
        (["cursor", "--name", "x"], "--name takes letters, digits, - and _, and goes with one bridge"),
        (
            ["cursor", "aoc", "--name", "a b"],
            "--name takes letters, digits, - and _, and goes with one bridge",
        ),
        (["cursor", "--url", "bridges.example.com"], "--url takes an address such as"),
        (["cursor", "--url", "https://[x"], "--url takes an address such as"),
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
    assert said.err.endswith(RIGHT)
    assert everything(desk.home) == {}


@pytest.mark.parametrize(
    ("client", "text", "place"),
    [
        ("cursor", '{\n  "mcpServers": {\n    "a": 1 "b"\n}}', '3:12: a "," or "}" is missing here'),
        ("cursor", '{\r\n  "x": tru\r\n}', "2:8: a value is missing here"),
        ("cursor", "[]", '1:1: an object, "{ … }", was expected here'),
        ("cursor", '{"mcpServers": null}', '1:16: an object, "{ … }", was expected here'),
        ("codex", 'a = 1\n[b\nc = "', "2:3: "),
        ("codex", 'a = """', "1:8: "),
        ("codex", "mcp_servers = 3", "1:1: mcp_servers was expected to be a table"),
        (
            "codex",
            "mcp_servers.aoc.command = 'x'\nmcp_servers.aoc.args = ['aoc']",
            "1:1: mcp_servers.aoc is not",
        ),
    ],
)
def test_a_broken_file_is_refused_with_its_place(desk: Desk, client: str, text: str, place: str) -> None:
    path = desk.project / "config"
    path.write_text(text, encoding="utf-8", newline="")

    said = desk.install(client, "aoc", "--path", str(path))

    assert (said.status, said.out) == (1, "")
    assert said.err.startswith(f"bridgehead install: {path}:{place}")
    assert said.err.endswith("Nothing was written.\n")
    assert everything(desk.project) == {"config": text.encode()}


def test_a_file_that_is_not_utf_8_is_refused_with_its_place(desk: Desk) -> None:
    path = desk.project / "config"
    path.write_bytes(b'{\n  "a": "\xe9"}')

    said = desk.install("cursor", "--path", str(path))

    assert said.err == f"bridgehead install: {path}:2:9: this is not UTF-8. Nothing was written.\n"
    assert path.read_bytes() == b'{\n  "a": "\xe9"}'


def test_all_bridges_are_installed_where_none_is_named(desk: Desk) -> None:
    said = desk.install("cursor")

    assert list(servers(cursor(desk))) == ["bitburner", "aoc", "mercury"]
    assert [line.split()[1] for line in said.out.splitlines()[1:4]] == ["added"] * 3
    assert "MERCURY_API_KEY is not set" in said.out
    assert "HTTPS_PROXY" not in said.out


def test_options_and_bridges_may_be_mixed(desk: Desk) -> None:
    said = desk.install("cursor", "--dry-run", "aoc", "--name", "puzzles", environment={"AOC_YEAR": "2024"})

    assert said.status == 0
    assert '+    "puzzles": {' in said.out


def test_a_key_in_a_file_is_no_missing_key(desk: Desk) -> None:
    said = desk.install("cursor", environment={"MERCURY_API_KEY_FILE": "/run/key"})

    assert servers(cursor(desk))["mercury"]["env"] == {"MERCURY_API_KEY_FILE": "/run/key"}
    assert "is not set" not in said.out


def test_a_server_is_given_what_is_set_and_not_the_default(desk: Desk) -> None:
    environment = {"AOC_DATA_DIR": "puzzles", "AOC_YEAR": "2025", "PATH": "/bin", "MCP_TRANSPORT": "http"}

    desk.install("cursor", environment=environment)

    written = servers(cursor(desk))
    assert written["aoc"]["env"] == {"AOC_DATA_DIR": str(Path.cwd() / "puzzles")}
    assert "env" not in written["mercury"]
    assert "env" not in written["bitburner"]


def test_a_setting_with_which_no_server_would_start_is_refused(desk: Desk) -> None:
    said = desk.install("cursor", environment={"AOC_YEAR": "1999"})

    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("bridgehead install: AOC_YEAR is '1999'")
    assert everything(desk.home) == {}


@pytest.mark.parametrize(
    ("client", "sentence"),
    [
        (
            "zed",
            "Zed cannot refer to a variable there. Set it where Zed starts, or run this again with",
        ),
        ("claude-desktop", "If you accept that, run this again with --write-secrets to put it there."),
        (
            "cursor",
            "MERCURY_API_KEY is not in the file: Cursor reads its environment. Set it where Cursor starts.",
        ),
    ],
)
def test_what_has_to_be_set_elsewhere_is_said(desk: Desk, client: str, sentence: str) -> None:
    said = desk.install(client, "mercury", environment={"MERCURY_API_KEY": KEY})

    assert sentence in said.out
    assert not any(KEY.encode() in data for data in everything(desk.home).values())


def test_a_secret_that_was_written_before_stays_and_is_said_to(desk: Desk) -> None:
    environment = {"MERCURY_API_KEY": KEY}
    desk.install("zed", "mercury", "--write-secrets", environment=environment)
    before = everything(desk.home)

    said = desk.install("zed", "mercury", environment=environment)

    assert "MERCURY_API_KEY is in the file already" in said.out
    assert everything(desk.home) == before


def test_a_dry_run_never_shows_a_secret(desk: Desk) -> None:
    environment = {"MERCURY_API_KEY": KEY}
    coming = desk.install("zed", "mercury", "--write-secrets", "--dry-run", environment=environment)
    desk.install("zed", "mercury", "--write-secrets", environment=environment)

    going = desk.install("zed", "mercury", "--remove", "--dry-run")

    assert '+        "MERCURY_API_KEY": "(secret)"' in coming.out
    assert '-        "MERCURY_API_KEY": "(secret)"' in going.out
    assert KEY not in coming.out + going.out


def test_a_secret_with_odd_characters_is_hidden_too(desk: Desk) -> None:
    odd = 'pass"word\\ü'

    shown = [
        desk.install(
            client, "mercury", "--write-secrets", "--dry-run", environment={"MERCURY_API_KEY": odd}
        ).out
        for client in ("zed", "codex")
    ]

    assert all("(secret)" in out and "word" not in out for out in shown)


def test_a_dry_run_of_nothing_says_so(desk: Desk) -> None:
    desk.install("cursor", "aoc")

    said = desk.install("cursor", "aoc", "--dry-run")

    assert said.out == f"{cursor(desk)}: nothing would change\n"


def test_an_update_keeps_what_others_added_to_our_entry(desk: Desk) -> None:
    desk.install("cursor", "aoc", environment={"AOC_YEAR": "2024"})
    text = cursor(desk).read_text(encoding="utf-8")
    cursor(desk).write_text(text.replace('"args"', '"disabled": true,\n      "args"'), encoding="utf-8")

    said = desk.install("cursor", "aoc", "--command", sys.executable)

    entry = servers(cursor(desk))["aoc"]
    assert "updated" in said.out
    assert (entry["command"], entry["disabled"], entry["env"]) == (sys.executable, True, {"AOC_YEAR": "2024"})


def test_a_server_of_the_same_name_that_is_not_ours_is_left_alone(desk: Desk) -> None:
    cursor(desk).parent.mkdir()
    cursor(desk).write_text('{"mcpServers": {"mercury": {"command": "thermometer"}}}', encoding="utf-8")
    before = everything(desk.home)

    installed = desk.install("cursor", "mercury")
    removed = desk.install("cursor", "mercury", "--remove")

    assert (installed.status, installed.out) == (1, "")
    assert "Choose another name with --name, or replace it with --force." in installed.err
    assert "left alone" in removed.out
    assert everything(desk.home) == before


def test_force_replaces_it_and_another_name_goes_beside_it(desk: Desk) -> None:
    cursor(desk).parent.mkdir()
    cursor(desk).write_text('{"mcpServers": {"mercury": {"command": "thermometer"}}}', encoding="utf-8")

    desk.install("cursor", "mercury", "--name", "mercury-llm")
    beside = servers(cursor(desk))
    desk.install("cursor", "mercury", "--force")
    desk.install("cursor", "--name", "mercury-llm", "--remove")

    assert beside["mercury"] == {"command": "thermometer"}
    assert beside["mercury-llm"]["args"] == ["mercury"]
    assert list(servers(cursor(desk))) == ["mercury"]
    assert servers(cursor(desk))["mercury"]["args"] == ["mercury"]


def test_a_file_that_came_with_the_bridges_goes_with_them(desk: Desk) -> None:
    desk.install("cursor")

    said = desk.install("cursor", "--remove")

    assert "Nothing else was in the file, so it was removed." in said.out
    assert not cursor(desk).exists()


def test_removing_what_is_not_there_changes_nothing(desk: Desk) -> None:
    said = desk.install("cursor", "--remove")

    assert said.status == 0
    assert "bitburner  not there" in said.out
    assert everything(desk.home) == {}


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("https://b.example.com/", {"bitburner", "aoc", "mercury"}),
        ("https://b.example.com/mcp", {"bridgehead"}),
        ("https://b.example.com/tools/aoc/mcp/", {"aoc"}),
    ],
)
def test_an_address_is_a_host_of_bridges_or_one_server(desk: Desk, url: str, names: set[str]) -> None:
    desk.install("cursor", "--url", url)
    written = servers(cursor(desk))
    desk.install("cursor", "--remove")

    assert set(written) == names
    assert all(str(entry["url"]).endswith("/mcp") for entry in written.values())
    assert not cursor(desk).exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["claude-desktop", "--url", "https://b.example.com"], "Claude Desktop takes no remote servers"),
        (["cursor", "aoc", "--url", "https://b.example.com/mercury/mcp"], "is one server, and not aoc"),
        (["zed", "--url", "https://b.example.com", "--write-secrets"], "BRIDGEHEAD_TOKEN is not set"),
        (["cursor", "--command", "no-such-program-here"], "is no program that can be run here"),
        (["cursor", "--command", "'"], "is no program that can be run here"),
        (["cursor", "--command", ""], "is no program that can be run here"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(
    desk: Desk, arguments: list[str], sentence: str
) -> None:
    said = desk.install(*arguments)

    assert (said.status, said.out, said.err.count("\n")) == (1, "", 1)
    assert sentence in said.err
    assert everything(desk.home) == {}


@pytest.mark.parametrize("client", ["zed", "codex"])
def test_a_token_is_written_on_demand_and_hidden_from_the_screen(desk: Desk, client: str) -> None:
    arguments = (client, "aoc", "--url", "http://b.example.com", "--token-env", "TEAM", "--write-secrets")

    shown = desk.install(*arguments, "--dry-run", environment={"TEAM": KEY})
    said = desk.install(*arguments, environment={"TEAM": KEY})

    assert any(f"Bearer {KEY}".encode() in data for data in everything(desk.home).values())
    assert "The token in TEAM is written into the file." in said.out
    assert "The token will cross the network unencrypted" in said.out
    assert KEY not in shown.out + said.out


def test_a_client_that_cannot_name_a_token_gets_none_and_it_is_said(desk: Desk) -> None:
    said = desk.install("zed", "aoc", "--url", "https://b.example.com")

    assert "No token is in the file: Zed cannot refer to BRIDGEHEAD_TOKEN there." in said.out


def test_a_server_without_tokens_gets_no_header(desk: Desk) -> None:
    desk.install("cursor", "aoc", "--url", "http://localhost:3000", "--no-token")

    assert servers(cursor(desk)) == {"aoc": {"url": "http://localhost:3000/aoc/mcp"}}


def test_a_server_may_move_from_here_to_a_team_and_back(desk: Desk) -> None:
    desk.install("cursor", "aoc", environment={"AOC_YEAR": "2024"})
    desk.install("cursor", "aoc", "--url", "https://b.example.com")
    far = servers(cursor(desk))["aoc"]
    desk.install("cursor", "aoc")

    assert set(far) == {"url", "headers"}
    assert servers(cursor(desk))["aoc"] == {"type": "stdio", "command": str(desk.program), "args": ["aoc"]}


def test_the_servers_of_others_are_not_listed_as_ours(desk: Desk) -> None:
    path = desk.home / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_bytes((CONFIGURATIONS / "gemini.json").read_bytes())
    (desk.home / ".cursor").mkdir()
    cursor(desk).write_text('{"mcpServers": {"odd": null, "x": {"url": "http://[y"}}}', encoding="utf-8")

    listed = desk.install("--list").out

    assert listed.count(" found      no bridges") == 2


def test_a_server_of_all_bridges_may_have_any_name(desk: Desk) -> None:
    arguments = ("cursor", "--url", "https://b.example.com/mcp", "--name", "team")
    desk.install(*arguments)
    said = desk.install(*arguments)
    desk.install("cursor", "--remove", "--name", "team")

    assert "already there" in said.out
    assert not cursor(desk).exists()


def test_what_codex_was_told_to_pass_on_is_kept(desk: Desk) -> None:
    path = desk.home / ".codex" / "config.toml"
    desk.install("codex", "mercury", environment={"MERCURY_API_KEY": KEY})
    before = path.read_bytes()

    said = desk.install("codex", "mercury")
    kept = path.read_bytes()
    desk.install("codex", "mercury", "--write-secrets", environment={"MERCURY_API_KEY": KEY})
    written = path.read_text(encoding="utf-8")
    desk.install("codex", "mercury", environment={"MERCURY_API_KEY": KEY})

    assert kept == before
    assert "is not set" not in said.out
    assert "env_vars" not in written
    assert path.read_bytes() == before


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
    assert str(cursor(desk)) in lines["cursor"]
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
        timeout=30,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert str(tmp_path / ".cursor" / "mcp.json") in done.stdout
