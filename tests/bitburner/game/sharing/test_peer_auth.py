"""Who may share a game: processes that know the key of the user, each claim once and not for long."""

from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from bridgehead.bitburner.game.sharing.peer_auth import Prover, load_key
from bridgehead.bitburner.game.sockets import RELAY_PATH
from bridgehead.runtime.timing import SystemClock
from tests.bitburner.playing import Play, bridged, settings


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
    class Yesterday(SystemClock):
        @staticmethod
        def now() -> float:
            return SystemClock.now() - 86_400

    async with bridged(tmp_path) as play:
        with pytest.raises(InvalidStatus):
            await visited(play, Prover(load_key(settings(tmp_path)), Yesterday()).make_claim())


def test_the_key_is_private_and_the_same_for_all_processes_of_a_user(tmp_path: Path) -> None:
    key = load_key(settings(tmp_path))

    assert key == load_key(settings(tmp_path))
    assert key != load_key(settings(tmp_path / "other"))
    (path,) = tmp_path.glob("bitburner/relay.key")
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
