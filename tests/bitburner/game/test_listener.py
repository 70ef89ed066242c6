"""The connection: a game that comes and goes, stays silent, answers late or in disorder, and a second one."""

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from bridgehead.bitburner.simulator import Faults, Game
from tests.bitburner.playing import FILES, PAGE, Play, bridged, played
from tests.support.waiting import PATIENCE, until


async def test_the_port_is_open_before_any_tool_is_called(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play:
        assert await play.game.dial(play.url, PAGE)


async def test_without_a_game_the_steps_are_told(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play:
        text, problem = await play.fails("list_files")

    host, _, port = play.session.board.address.rpartition(":")
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


async def test_a_drop_rejects_what_is_in_flight_at_once(tmp_path: Path) -> None:
    game = Game(3, FILES, Faults(silence=1.0))
    async with played(tmp_path, game=game, RPC_TIMEOUT_MS="60000") as play:
        calls = [asyncio.ensure_future(play.fails("list_files")) for _ in range(5)]
        await until(lambda: len(game.requests) == 5)
        game.cut()
        async with asyncio.timeout(PATIENCE):
            answers = await asyncio.gather(*calls)

        for text, problem in answers:
            assert "Bitburner disconnected" in text
            assert (problem["code"], problem["transient"]) == ("disconnected", True)
        await until(lambda: play.session.board.link is None)


async def test_a_game_that_comes_back_is_used_and_counted(play: Play) -> None:
    await play.game.hang_up()
    await until(lambda: play.session.board.link is None)
    assert await play.game.dial(play.url)
    await until(lambda: play.session.board.link is not None)

    assert json.loads((await play.ok("list_files"))[0])
    assert play.count("ws_reconnects_total") == 1


async def test_silence_ends_in_a_timeout_that_tells_how_long_it_was(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(2, FILES, Faults(silence=1.0)), RPC_TIMEOUT_MS="120") as play:
        text, problem = await play.fails("read_file", filename="hack.js")

        assert (problem["code"], problem["transient"]) == ("timeout", True)
        assert "did not answer getFile within 0.1" in text
        assert play.count("rpc_timeouts_total") == 1
        link = play.session.board.link
        assert link is not None
        assert link.pending == 0


async def test_a_reply_after_its_time_is_ignored_and_counted(tmp_path: Path) -> None:
    game = Game(3, FILES, Faults(late=1.0, delay=1.5, times=1))
    async with played(tmp_path, game=game, RPC_TIMEOUT_MS="1000") as play:
        await play.fails("read_file", filename="hack.js")
        await until(lambda: play.count("ws_replies_ignored_total", "unsolicited") == 1)

        assert (await play.ok("read_file", filename="notes.txt"))[0] == "one\ntwo\nthree"


async def test_replies_out_of_order_find_their_calls(tmp_path: Path) -> None:
    files = {"home": {f"f{number}.txt": f"content {number}" for number in range(50)}}
    async with played(tmp_path, game=Game(3, files, Faults(out_of_order=1.0))) as play:
        answers = await asyncio.gather(
            *(play.ok("read_file", filename=f"f{number}.txt") for number in range(50))
        )

    assert [text for text, _ in answers] == [f"content {number}" for number in range(50)]


async def test_garbage_between_replies_is_ignored_and_counted(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, FILES, Faults(garbage=1.0))) as play:
        for _ in range(40):
            assert (await play.ok("read_file", filename="notes.txt"))[0] == "one\ntwo\nthree"
        ignored = play.count("ws_replies_ignored_total", "malformed") + play.count(
            "ws_replies_ignored_total", "unsolicited"
        )

    assert ignored == 40


async def test_an_error_object_keeps_its_message_and_code(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play, dialled(play) as socket:
        call = asyncio.ensure_future(play.fails("list_files"))
        await reply(socket, error={"code": -32050, "message": "no such luck"})
        text, problem = await call

        assert "no such luck (code -32050)" in text
        assert (problem["remote_message"], problem["remote_code"]) == ("no such luck", -32050)


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"error": {"code": -32601, "message": "Method not found"}}, "unsupported_by_game"),
        ({"error": {"reason": 1}}, "remote_error"),
        ({"error": ["odd"]}, "remote_error"),
        ({"error": {"code": True, "message": "x"}}, "remote_error"),
        ({}, "odd_reply"),
        ({"result": 5}, "odd_reply"),
        ({"result": None}, "odd_reply"),
    ],
)
async def test_any_reply_to_a_call_ends_it_clearly(
    tmp_path: Path, members: dict[str, Any], code: str
) -> None:
    async with bridged(tmp_path) as play, dialled(play) as socket:
        call = asyncio.ensure_future(play.fails("list_files"))
        await reply(socket, **members)

        assert (await call)[1]["code"] == code


async def test_a_null_error_beside_a_result_is_no_error(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play, dialled(play) as socket:
        call = asyncio.ensure_future(play.ok("list_files"))
        await reply(socket, result=["a.js"], error=None)

        assert (await call)[0] == '["a.js"]'


async def test_every_request_carries_params_and_its_own_id(play: Play) -> None:
    await play.ok("get_netscript_definitions")
    await play.ok("list_files")

    assert all(request["params"] is not None for request in play.game.requests)
    assert len({request["id"] for request in play.game.requests}) == len(play.game.requests)


# --- exactly one game ---


async def test_a_second_game_is_refused_with_the_reason(play: Play) -> None:
    async with Game(3, FILES) as second:
        await second.dial(play.url, PAGE)
        code, reason = await second.wait_closed() or (0, "")

    assert code == 1013
    assert "Another Bitburner game is connected" in reason
    assert json.loads((await play.ok("list_files"))[0])


async def test_a_game_that_does_not_answer_a_ping_is_replaced(tmp_path: Path) -> None:
    async with (
        played(tmp_path, game=Game(3, FILES), BITBURNER_PING_TIMEOUT_MS="100") as play,
        Game(3, {"home": {"second.js": ""}}) as second,
    ):
        play.game.freeze()
        call = asyncio.ensure_future(play.fails("list_files"))
        await until(lambda: play.count("tool_calls_total", "list_files") == 1)
        assert await second.dial(play.url)
        assert "Bitburner disconnected" in (await call)[0]
        await until(lambda: play.session.board.link is not None)

        assert (await play.ok("list_files"))[0] == '["second.js"]'


async def test_a_dead_game_does_not_linger(tmp_path: Path) -> None:
    async with played(
        tmp_path,
        game=Game(3, FILES),
        BITBURNER_PING_INTERVAL_MS="50",
        BITBURNER_PING_TIMEOUT_MS="100",
    ) as play:
        play.game.freeze()

        await until(lambda: play.session.board.link is None)


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


async def test_a_large_answer_goes_through(tmp_path: Path) -> None:
    content = "x" * 8_000_000
    async with played(tmp_path, game=Game(2, {"home": {"big.txt": content}})) as play:
        text, _ = await play.ok("read_file", filename="big.txt", max_characters=9_000_000)

    assert len(text) == len(content)


async def test_an_answer_over_the_limit_names_the_setting_and_keeps_the_game(
    tmp_path: Path, generation: int
) -> None:
    async with played(
        tmp_path, game=Game(generation, {"home": {"big.txt": "x" * 20_000}}), BITBURNER_MAX_FRAME_BYTES="10kb"
    ) as play:
        text, problem = await play.fails("read_file", filename="big.txt")

        assert problem["code"] == "reply_too_large"
        assert "BITBURNER_MAX_FRAME_BYTES is 10,000" in text
        assert (await play.ok("list_files"))[0] == '["big.txt"]'
        assert play.count("ws_reconnects_total") == 0


async def test_an_answer_far_over_the_limit_ends_the_connection_and_names_the_cause(tmp_path: Path) -> None:
    async with played(
        tmp_path, game=Game(2, {"home": {"big.txt": "x" * 200_000}}), BITBURNER_MAX_FRAME_BYTES="10kb"
    ) as play:
        text, _ = await play.fails("read_file", filename="big.txt")
        assert "Bitburner disconnected" in text
        assert "BITBURNER_MAX_FRAME_BYTES" in text
        assert await play.game.dial(play.url)
        await until(lambda: play.session.board.link is not None)

        assert (await play.ok("list_files"))[0] == '["big.txt"]'


async def test_with_a_certificate_the_game_dials_wss(tmp_path: Path, certificate: Path) -> None:
    trust = ssl.create_default_context(cafile=certificate)
    async with bridged(tmp_path, BITBURNER_TLS_CERT=str(certificate)) as play:
        address = play.session.board.address.replace("127.0.0.1", "localhost")
        assert await play.game.dial(f"wss://{address}", trust=trust)
        await until(lambda: play.session.board.link is not None)

        assert json.loads((await play.ok("list_files"))[0])


# --- a game by hand ---


def dialled(play: Play) -> connect:
    return connect(play.url, proxy=None)


async def reply(socket: ClientConnection, **members: Any) -> None:
    asked = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))
    await socket.send(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **members}))
