"""Peer authentication: only who knows the key comes in, once, and soon."""

import time
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from bridgehead.bitburner.game.sharing.peer_auth import NONCE, PROOF, TIME, Prover, key_path, load_key
from bridgehead.bitburner.game.sockets import RELAY_PATH
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.timing import SystemClock
from tests.bitburner.playing import Play, bridged, settings
from tests.support.clock import Clock
from tests.support.posix import is_private


def test_the_key_is_made_once_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    first, second = load_key(settings(tmp_path)), load_key(settings(tmp_path))

    assert first == second
    assert len(first) == 32
    assert first != load_key(settings(tmp_path / "other"))
    assert is_private(key_path(settings(tmp_path)))


def test_a_key_that_cannot_be_made_is_said_so(tmp_path: Path) -> None:
    key_path(settings(tmp_path)).mkdir()

    with pytest.raises(StorageError, match="The key for sharing a game cannot be read or created"):
        load_key(settings(tmp_path))


def test_who_knows_the_key_comes_in_once() -> None:
    clock = Clock()
    guest, owner = Prover(b"key", clock), Prover(b"key", clock)
    claim = guest.make_claim()

    assert owner.verify_claim(claim)
    assert not owner.verify_claim(claim)
    assert owner.verify_claim(guest.make_claim())


@pytest.mark.parametrize("changed", [NONCE, TIME, PROOF])
@pytest.mark.parametrize("value", ["", "0", "ü\ud83d", None])
def test_a_claim_that_was_changed_opens_nothing(changed: str, value: str | None) -> None:
    prover = Prover(b"key", Clock())
    claim = {name: text for name, text in prover.make_claim().items() if name != changed}
    if value is not None:
        claim[changed] = value

    assert not prover.verify_claim(claim)


def test_another_key_opens_nothing() -> None:
    assert not Prover(b"key", Clock()).verify_claim(Prover(b"other", Clock()).make_claim())


@pytest.mark.parametrize(("later", "is_valid"), [(60.0, True), (60.1, False), (-60.0, True), (-60.1, False)])
def test_a_claim_is_good_for_a_minute(later: float, *, is_valid: bool) -> None:
    clock = Clock()
    prover = Prover(b"key", clock)
    claim = prover.make_claim()
    clock.advance(later)

    assert prover.verify_claim(claim) is is_valid


def test_a_claim_is_remembered_as_long_as_it_could_come_again() -> None:
    clock = Clock()
    guest, owner = Prover(b"key", clock), Prover(b"key", clock)
    clock.advance(60)
    claim = guest.make_claim()
    clock.advance(-60)
    assert owner.verify_claim(claim)
    clock.advance(120)
    assert not owner.verify_claim(claim)


def test_the_owner_proves_itself_for_the_number_of_the_guest() -> None:
    guest, owner = Prover(b"key", Clock()), Prover(b"key", Clock())
    claim, other = guest.make_claim(), guest.make_claim()

    assert guest.verify_owner(claim, owner.prove_ownership(claim[NONCE]))
    for proof in (None, "", "ü", claim[PROOF], owner.prove_ownership(other[NONCE])):
        assert not guest.verify_owner(claim, proof)
    assert not guest.verify_owner(claim, Prover(b"other", Clock()).prove_ownership(claim[NONCE]))


async def visited(play: Play, headers: dict[str, str], origin: Any = None) -> ClientConnection:
    return await connect(play.url + RELAY_PATH, additional_headers=headers, origin=origin, proxy=None)


async def test_nobody_shares_without_the_users_key(tmp_path: Path) -> None:
    foreign = Prover(b"another key", SystemClock())
    async with bridged(tmp_path) as play:
        for headers in ({}, foreign.make_claim()):
            with pytest.raises(InvalidStatus) as refusal:
                await visited(play, headers)
            assert refusal.value.response.status_code == 401


async def test_a_page_never_shares_and_a_claim_works_once(tmp_path: Path) -> None:
    prover = Prover(load_key(settings(tmp_path)), SystemClock())
    async with bridged(tmp_path) as play:
        with pytest.raises(InvalidStatus):
            await visited(play, prover.make_claim(), origin="http://localhost")
        claim = prover.make_claim()
        await (await visited(play, claim)).close()
        with pytest.raises(InvalidStatus):
            await visited(play, claim)


async def test_an_old_claim_is_refused(tmp_path: Path) -> None:
    yesterday = Clock(time.time() - 86_400)
    async with bridged(tmp_path) as play:
        with pytest.raises(InvalidStatus):
            await visited(play, Prover(load_key(settings(tmp_path)), yesterday).make_claim())
