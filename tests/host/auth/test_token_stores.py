"""Token stores: which one the settings choose, and without which tokens a host does not start."""

from pathlib import Path

import pytest

from bridgehead.host.auth.revocation import AnnouncedTokens
from bridgehead.host.auth.token_database import TokenDatabase
from bridgehead.host.auth.token_stores import announced_tokens, open_tokens, token_store
from bridgehead.host.auth.tokens import TokenFile, create_token
from bridgehead.host.settings import HostSettings
from bridgehead.runtime.errors import BridgeError

DATABASE = {"BRIDGEHEAD_DATABASE_URL": "postgresql://me@127.0.0.1:9/none"}


def settings(folder: Path, **more: str) -> HostSettings:
    return HostSettings({"BRIDGEHEAD_STATE_DIR": str(folder), **more})


def test_tokens_are_in_the_database_unless_a_file_is_named(tmp_path: Path) -> None:
    named = {"BRIDGEHEAD_TOKENS_FILE": str(tmp_path / "mine.json")}

    assert token_store(settings(tmp_path)).where == str(tmp_path / "host" / "tokens.json")
    assert isinstance(token_store(settings(tmp_path, **DATABASE)), TokenDatabase)
    assert token_store(settings(tmp_path, **DATABASE, **named)).where == str(tmp_path / "mine.json")


def test_a_change_of_tokens_is_announced_only_where_other_hosts_can_hear_it(tmp_path: Path) -> None:
    redis = {"BRIDGEHEAD_REDIS_URL": "redis://127.0.0.1:9"}

    assert isinstance(announced_tokens(settings(tmp_path)), TokenFile)
    assert isinstance(announced_tokens(settings(tmp_path, **redis)), AnnouncedTokens)


def test_nobody_is_asked_on_loopback_and_everybody_where_that_is_set(tmp_path: Path) -> None:
    loopback = open_tokens(settings(tmp_path))
    assert loopback is not None  # a token that is sent is still looked up
    assert len(loopback) == 0
    with pytest.raises(BridgeError, match="need a token, and there is none"):
        open_tokens(settings(tmp_path, BRIDGEHEAD_AUTH="on"))

    TokenFile(tmp_path / "host" / "tokens.json").add(create_token("alice", 0.0)[0])
    tokens = open_tokens(settings(tmp_path, BRIDGEHEAD_AUTH="on"))
    assert tokens is not None
    assert len(tokens) == 1


def test_a_host_starts_without_tokens_where_an_issuer_gives_them_or_the_database_is_down(
    tmp_path: Path,
) -> None:
    issuer = {
        "BRIDGEHEAD_OAUTH_ISSUER": "https://id.example",
        "BRIDGEHEAD_OAUTH_AUDIENCE": "https://me.example",
    }
    by_issuer = open_tokens(settings(tmp_path, **issuer))
    by_database = open_tokens(settings(tmp_path, BRIDGEHEAD_AUTH="on", **DATABASE))

    assert by_issuer is not None
    assert by_database is not None
    assert (len(by_issuer), len(by_database), by_database.is_known) == (0, 0, False)


def test_a_broken_file_of_tokens_stops_the_start(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text("{")

    with pytest.raises(BridgeError, match=r"tokens\.json"):
        open_tokens(settings(tmp_path, BRIDGEHEAD_TOKENS_FILE=str(file)))
