"""GameConnection: ids that no earlier reply fits, counters from the start, words without a game."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bridgehead.bitburner.bridge import make_bridge
from bridgehead.bitburner.errors import NotConnected
from bridgehead.bitburner.game import remote
from bridgehead.bitburner.game.connection import GameConnection
from bridgehead.bitburner.game.counters import GameCounters
from bridgehead.bitburner.simulator import Faults
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.timing import SystemClock
from tests.bitburner.playing import FILES, Play, bridged, played, settings
from tests.support.game import Game
from tests.support.waiting import until

SEED = ("rpc_timeouts_total", "ws_reconnects_total", "tool_calls_total", "tool_errors_total")


async def test_ids_start_anywhere_so_that_a_reply_of_another_process_fits_no_call(tmp_path: Path) -> None:
    first: set[int] = set()
    for number in range(3):
        async with played(tmp_path / str(number), game=Game(3, FILES)) as play:
            await play.ok("list_files")
            first.add(play.game.requests[0]["id"])

    assert len(first) == 3
    assert all(0 <= one < 2**53 for one in first)
    assert max(first) - min(first) > 1000


async def test_ids_go_on_from_one_connection_to_the_next(play: Play) -> None:
    await play.ok("list_files")
    await play.game.hang_up()
    await until(lambda: play.session.connection.link is None)
    await play.game.dial(play.url)
    await until(lambda: play.session.connection.link is not None)
    await play.ok("list_files")

    ids = [one["id"] for one in play.game.requests]
    assert ids == sorted(set(ids))


def test_the_metrics_of_the_contract_are_there_before_anything_happens(tmp_path: Path) -> None:
    metrics = Metrics()
    bridge = make_bridge(settings(tmp_path), metrics=metrics)

    found = {one.name: one.values for one in metrics.all if one.name in SEED}  # type: ignore[union-attr]
    assert set(found) == set(SEED)
    assert found["rpc_timeouts_total"] == found["ws_reconnects_total"] == {(): 0}
    assert found["tool_calls_total"] == {(name,): 0 for name in bridge.tools}


async def test_a_game_that_connects_or_goes_changes_the_list_of_resources(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play:
        assert await play.game.dial(play.url)
        await play.client.inbox.of("notifications/resources/list_changed")
        await play.game.hang_up()
        await play.client.inbox.of("notifications/resources/list_changed")


async def test_after_a_drop_the_text_says_since_when_and_whether_the_game_comes_back(
    tmp_path: Path, generation: int
) -> None:
    async with played(tmp_path, game=Game(generation, FILES)) as play:
        await play.ok("connection_status")
        await play.game.hang_up()
        await until(lambda: play.session.connection.link is None)
        text, _ = await play.fails("list_files")
        status, _ = await play.ok("connection_status")

    assert text.startswith("Bitburner disconnected: the game went 0 s ago, at 20")
    assert "set host" not in text
    expected = "comes back by itself if" if generation == 3 else "does not reconnect by itself"
    assert expected in text
    assert expected in status


async def test_without_a_known_generation_both_ways_back_are_told(play: Play) -> None:
    await play.game.hang_up()
    await until(lambda: play.session.connection.link is None)
    text, _ = await play.fails("list_files")

    assert "version 3 comes back by itself" in text
    assert "in version 2, ask the player to press Connect" in text


async def test_an_exchange_is_logged_at_info_where_it_is_slow(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[tuple[str, str]] = []
    monkeypatch.setattr(remote.log, "info", lambda event, **about: events.append((event, about["method"])))
    await play.ok("list_files")
    play.game.faults = Faults(late=1, delay=0.6)
    await play.ok("list_files")

    assert events == [("slow exchange", "getFileNames")]


class Told:
    """A connection by itself, and who it tells."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.counters = GameCounters(Metrics())
        self.connection = GameConnection(settings(folder, **environment), self.counters, SystemClock())
        self.changes = 0
        self.connection.on_change.append(self._note)

    def _note(self) -> None:
        self.changes += 1

    def link(self) -> Any:
        return SimpleNamespace(memory={"kept": 1})


async def test_the_link_that_was_plugged_last_is_the_current_one(tmp_path: Path) -> None:
    told = Told(tmp_path)
    first, second = told.link(), told.link()
    told.connection.report_problem("the port is taken")
    told.connection.plug(first, "https://game")

    assert (told.connection.link, told.connection.game, told.connection.problem) == (
        first,
        "https://game",
        "",
    )
    assert (first.memory, told.counters.is_connected, told.changes) == ({}, True, 1)
    assert told.counters.reconnects.values == {(): 0}

    told.connection.plug(second, "")
    assert told.counters.reconnects.values == {(): 1}
    told.connection.unplug(first)
    assert (told.connection.link, told.changes) == (second, 2)
    told.connection.unplug(second)
    assert (told.connection.link, told.changes, told.counters.is_connected) == (None, 3, False)


async def test_whoever_waits_for_a_game_gets_the_one_that_comes(tmp_path: Path) -> None:
    told = Told(tmp_path, BITBURNER_CONNECT_WAIT_MS="60000")
    link = told.link()
    for _ in range(2):
        waiting = asyncio.ensure_future(told.connection.require_link())
        await asyncio.sleep(0)
        assert not waiting.done()
        told.connection.plug(link, "")
        assert await waiting is link
        assert await told.connection.require_link() is link
        told.connection.unplug(link)


async def test_without_a_game_the_wait_ends(tmp_path: Path) -> None:
    with pytest.raises(NotConnected, match="no game has connected to this process yet"):
        await Told(tmp_path, BITBURNER_CONNECT_WAIT_MS="1").connection.require_link()


async def test_a_process_that_dials_says_so(tmp_path: Path) -> None:
    assert Told(tmp_path).connection.role == "owner"
    dialler = Told(tmp_path, BITBURNER_RPC_URL="ws://127.0.0.1:5").connection
    assert (dialler.role, dialler.address) == ("dialler", "ws://127.0.0.1:5")
