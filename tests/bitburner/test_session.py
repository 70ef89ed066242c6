"""Session: changes reach whoever listens, trouble in connecting is told, and nothing outlives it."""

import asyncio
from pathlib import Path

import pytest

from bridgehead.bitburner.game.counters import GameCounters
from bridgehead.bitburner.game.sharing.ownership import Ownership
from bridgehead.bitburner.game.websocket_client import WebSocketClient
from bridgehead.bitburner.session import open_session
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.timing import SystemClock
from tests.bitburner.playing import FILES, PAGE, Play, settings
from tests.support.game import Game
from tests.support.ports import free_port
from tests.support.waiting import until


async def test_a_change_reaches_everybody_who_listens_with_its_server_and_path(play: Play) -> None:
    heard: list[tuple[str, str]] = []
    play.session.writer.on_change.append(lambda change: heard.append((change.server, change.filename)))

    await play.ok("write_file", filename="new.js", content="// 1\n")
    await play.ok("delete_file", filename="new.js")
    await play.ok("read_file", filename="hack.js")

    assert heard == [("home", "new.js"), ("home", "new.js")]


@pytest.mark.parametrize("connector", [Ownership, WebSocketClient])
async def test_a_fault_in_connecting_is_told_instead_of_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connector: type[Ownership] | type[WebSocketClient]
) -> None:
    async def break_down(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(connector, "run", break_down)
    dialled = {"BITBURNER_RPC_URL": "ws://127.0.0.1:9"} if connector is WebSocketClient else {}
    async with open_session(settings(tmp_path, **dialled), GameCounters(Metrics()), SystemClock()) as session:
        await until(lambda: "start it again" in session.connection.problem)


async def test_a_session_that_ends_frees_its_port_and_leaves_nothing_running(tmp_path: Path) -> None:
    chosen = settings(tmp_path, BITBURNER_LISTEN=f"127.0.0.1:{free_port()}")
    before = asyncio.all_tasks()
    for _ in range(2):
        async with Game(3, FILES) as game:
            async with open_session(chosen, GameCounters(Metrics()), SystemClock()) as session:
                assert await game.dial(f"ws://{session.connection.address}", PAGE)
                await until(lambda: session.connection.link is not None)
            await until(lambda: not game.is_connected)

    await until(lambda: asyncio.all_tasks() <= before)
