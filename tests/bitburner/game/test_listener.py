"""The connection: a game that comes and goes, stays silent, answers late or in disorder, and a second one."""

import asyncio
import json
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State
from websockets.typing import Origin

from bridgehead.bitburner.game import sockets
from bridgehead.bitburner.game.listener import MAX_UNADMITTED
from tests.bitburner.playing import FILES, PAGE, Play, bridged, played
from tests.support.game import Game
from tests.support.waiting import PATIENCE, until


async def test_the_port_is_open_before_any_tool_is_called(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play:
        assert await play.game.dial(play.url, PAGE)


async def test_without_a_game_the_steps_are_told(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play:
        text, problem = await play.fails("list_files")

    host, _, port = play.session.connection.address.rpartition(":")
    assert text.startswith("Bitburner disconnected: no game has connected to this process yet. In Bitburner")
    assert f"set host {host} and port {port}, press Connect" in text
    assert "Web version" in text
    assert "Desktop version" in text
    assert (problem["code"], problem["transient"]) == ("not_connected", True)


async def test_a_call_waits_a_while_for_a_game_to_dial_in(tmp_path: Path) -> None:
    async with bridged(tmp_path, BITBURNER_CONNECT_WAIT_MS="10000") as play:
        call = asyncio.ensure_future(play.ok("list_files"))
        await until(lambda: play.count("tool_calls_total", "list_files") == 1)
        assert await play.game.dial(play.url)

        assert json.loads((await call)[0])


async def test_a_game_that_comes_back_is_used_and_counted(play: Play) -> None:
    await play.game.hang_up()
    await until(lambda: play.session.connection.link is None)
    assert await play.game.dial(play.url)
    await until(lambda: play.session.connection.link is not None)

    assert json.loads((await play.ok("list_files"))[0])
    assert play.count("ws_reconnects_total") == 1


# --- exactly one game ---


async def test_a_second_game_is_refused_with_the_reason(play: Play) -> None:
    async with Game(3, FILES) as second:
        await second.dial(play.url, PAGE)
        code, reason = await second.wait_closed() or (0, "")

    assert code == 1013
    assert "Another Bitburner game is connected" in reason
    assert json.loads((await play.ok("list_files"))[0])


async def test_a_game_that_does_not_answer_a_ping_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "PING_TIMEOUT_SECONDS", 0.1)
    async with (
        played(tmp_path, game=Game(3, FILES)) as play,
        Game(3, {"home": {"second.js": ""}}) as second,
    ):
        play.game.freeze()
        call = asyncio.ensure_future(play.fails("list_files"))
        await until(lambda: play.count("tool_calls_total", "list_files") == 1)
        assert await second.dial(play.url)
        assert "Bitburner disconnected" in (await call)[0]
        await until(lambda: play.session.connection.link is not None)

        assert (await play.ok("list_files"))[0] == '["second.js"]'


async def test_who_is_not_admitted_cannot_fill_the_memory_with_a_message(play: Play) -> None:
    """While the game is busy and does not answer the ping, the newcomers wait."""
    play.game.freeze()
    async with connect(play.url, origin=Origin(PAGE), compression=None, proxy=None) as waiting:
        await waiting.send("x" * 200_000)
        with pytest.raises(ConnectionClosed) as closed:
            await waiting.recv()

    assert closed.value.sent is not None
    assert closed.value.sent.code == 1009


async def wait_for_admission(play: Play) -> ClientConnection:
    return await connect(play.url, origin=Origin(PAGE), compression=None, proxy=None)


async def test_the_oldest_of_too_many_connections_that_are_not_admitted_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that never ask for a WebSocket, and those that wait until the game has answered the ping."""
    monkeypatch.setattr(sockets, "_OPEN_SECONDS", 10 * PATIENCE)
    monkeypatch.setattr(sockets, "PING_TIMEOUT_SECONDS", 10 * PATIENCE)
    async with played(tmp_path, game=Game(3, FILES)) as play, asyncio.timeout(PATIENCE):
        host, _, port = play.session.connection.address.rpartition(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(MAX_UNADMITTED)]
        play.game.freeze()
        waiting = [await wait_for_admission(play) for _ in range(MAX_UNADMITTED)]
        for reader, writer in silent:
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
        assert all(one.state is State.OPEN for one in waiting)

        waiting.append(await wait_for_admission(play))
        await waiting[0].wait_closed()
        assert all(one.state is State.OPEN for one in waiting[1:])
        play.game.thaw()
        assert json.loads((await play.ok("list_files"))[0])


async def test_a_connection_that_went_before_it_was_admitted_leaves_nothing(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "PING_TIMEOUT_SECONDS", 10 * PATIENCE)
    play.game.freeze()
    tasks = len(asyncio.all_tasks())
    for _ in range(3):
        waiting = await wait_for_admission(play)
        waiting.transport.abort()
        await waiting.wait_closed()
    await until(lambda: len(asyncio.all_tasks()) <= tasks)


async def test_an_admitted_game_may_send_large_messages(tmp_path: Path) -> None:
    content = "x" * 500_000
    async with bridged(tmp_path) as play:
        play.game.servers["home"]["large.txt"] = content
        assert await play.game.dial(play.url, PAGE)
        assert (await play.ok("read_file", filename="large.txt", max_characters=10**6))[0] == content


async def test_a_dead_game_does_not_linger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "PING_INTERVAL_SECONDS", 0.05)
    monkeypatch.setattr(sockets, "PING_TIMEOUT_SECONDS", 0.1)
    async with played(tmp_path, game=Game(3, FILES)) as play:
        play.game.freeze()

        await until(lambda: play.session.connection.link is None)


async def test_a_game_that_dials_again_replaces_itself(play: Play) -> None:
    assert await play.game.dial(play.url, PAGE)
    await until(lambda: play.game.is_connected)

    assert json.loads((await play.ok("list_files"))[0])


# --- origins ---


@pytest.mark.parametrize(
    "origin",
    [
        PAGE,
        None,
        "file://",
        "http://localhost:8000",
        "http://127.0.0.1",
        "https://localhost:1",
        "http://[::1]:9",
    ],
)
async def test_these_origins_are_let_in(tmp_path: Path, origin: str | None) -> None:
    async with bridged(tmp_path) as play:
        assert await play.game.dial(play.url, origin)


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://localhost.evil.example",
        "http://localhost:80x",
        "http://localhostx",
    ],
)
async def test_other_pages_are_kept_out_and_the_refusal_is_told(tmp_path: Path, origin: str) -> None:
    async with bridged(tmp_path) as play:
        assert not await play.game.dial(play.url, origin)
        text, _ = await play.fails("list_files")

    assert "403" in str(play.game.closed)
    assert f" Add {origin} to BITBURNER_ALLOWED_ORIGINS" in text
    assert text.index("Add ") < text.index("Options → Remote API")


async def test_the_list_of_origins_can_be_set(tmp_path: Path) -> None:
    async with bridged(tmp_path, BITBURNER_ALLOWED_ORIGINS="https://my.example/") as play:
        assert not await play.game.dial(play.url)
        assert not await play.game.dial(play.url, PAGE)
        assert await play.game.dial(play.url, "https://my.example")


async def test_all_origins_can_be_allowed(tmp_path: Path) -> None:
    async with bridged(tmp_path, BITBURNER_ALLOWED_ORIGINS="*") as play:
        assert await play.game.dial(play.url, "https://evil.example")


# --- size and encryption ---


async def test_with_a_certificate_the_game_dials_wss(tmp_path: Path, certificate: Path) -> None:
    trust = ssl.create_default_context(cafile=certificate)
    async with bridged(tmp_path, BITBURNER_TLS_CERT=str(certificate)) as play:
        address = play.session.connection.address.replace("127.0.0.1", "localhost")
        assert await play.game.dial(f"wss://{address}", trust=trust)
        await until(lambda: play.session.connection.link is not None)

        assert json.loads((await play.ok("list_files"))[0])
