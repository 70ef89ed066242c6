"""Secrets: keys and tokens are referred to where a client can, written on demand, and never shown."""

import pytest

from .desk import Desk, everything, servers
from .stand_ins import KEY


def test_a_key_in_a_file_is_no_missing_key(desk: Desk) -> None:
    environment = {"MERCURY_API_KEY_FILE": str(desk.home / "key")}
    said = desk.install("cursor", environment=environment)

    assert servers(desk.cursor)["mercury"]["env"] == environment
    assert "is not set" not in said.out


@pytest.mark.parametrize(
    ("client", "sentence"),
    [
        (
            "zed",
            "Zed cannot refer to a variable there. Set it where Zed starts, or run this again with",
        ),
        ("claude-desktop", "Run this again with --write-secrets to put it there, if you accept that."),
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

    assert servers(desk.cursor) == {"aoc": {"url": "http://localhost:3000/aoc/mcp"}}


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
