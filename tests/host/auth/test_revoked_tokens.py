"""Tokens that are revoked elsewhere: gone at once here, whatever a file that is read late still says."""

import asyncio
from pathlib import Path

from bridgehead.host.auth.tokens import FileTokens, TokenFile, TokenList
from tests.host.auth.test_tokens import NOW, added
from tests.support.waiting import PATIENCE


async def test_a_token_that_was_ended_stays_so_though_its_file_still_has_it(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    alice, bob = added(file, "alice"), added(file, "bob")
    tokens = FileTokens(file)
    tokens.read()
    own_id = alice.split("_")[1]
    found = tokens.find(own_id)
    assert found is not None
    assert found[1].name == "alice"

    tokens.end(own_id)
    assert (tokens.grant_of(alice), tokens.find(own_id), len(tokens)) == (None, None, 1)
    added(file, "cleo")
    tokens.read()
    assert tokens.grant_of(alice) is None
    assert [grant.name for grant in tokens.grants] == ["bob", "cleo"]
    assert tokens.grant_of(bob) is not None

    file.revoke("alice")
    tokens.read()
    assert tokens._ended == set()  # noqa: SLF001 - what cannot come again is not remembered


async def test_whoever_watches_hears_of_an_end_at_once_and_once(tmp_path: Path) -> None:
    tokens = FileTokens(TokenFile(tmp_path / "tokens.json"))
    waiting = asyncio.create_task(tokens._wait_until_due(PATIENCE))  # noqa: SLF001
    await asyncio.sleep(0.01)
    assert not waiting.done()
    tokens.end("of another process")

    assert await waiting is True
    assert await tokens._wait_until_due(0.01) is False  # noqa: SLF001


async def test_the_same_tokens_are_no_change(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    added(file, "alice")
    tokens = FileTokens(file)

    assert tokens._replace(file.read())
    assert not tokens._replace(file.read())
    assert tokens._replace(TokenList())


async def test_a_token_has_ended_when_it_was_revoked_or_has_expired(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    long, short = (added(file, name, expires=ends).split("_")[1] for name, ends in (("b", None), ("a", NOW)))
    tokens = FileTokens(file)
    tokens.read()

    assert [tokens.has_ended(short, NOW - 1), tokens.has_ended(short, NOW)] == [False, True]
    assert not tokens.has_ended(long, NOW)
    assert tokens.has_ended("revoked", NOW)
    assert tokens.has_ended("", NOW) is False  # of another issuer
    assert [grant.name for grant in tokens.grants] == ["a", "b"]


async def test_a_watch_looks_when_it_is_told_to(tmp_path: Path) -> None:
    tokens = FileTokens(TokenFile(tmp_path / "tokens.json"))
    looking = asyncio.create_task(tokens.wait())
    for _ in range(9):
        await asyncio.sleep(0)
    assert not looking.done()
    tokens.look_soon()
    await asyncio.wait_for(looking, PATIENCE)
