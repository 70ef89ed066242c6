"""The simulated game on a real WebSocket: how it dials, hangs up, hangs, and carries much."""

import asyncio
import ssl
from http import HTTPStatus

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

from tests.bitburner.simulator.listening import listening, next_frame, request
from tests.support.game import Game
from tests.support.waiting import PATIENCE

PAGE = "https://bitburner-official.github.io"


async def test_it_dials_as_a_page_does_and_says_nothing_by_itself() -> None:
    async with listening() as server, Game(2, {"home": {"a.js": ""}}) as game:
        assert await game.dial(server.url, origin=PAGE)
        connection = await server.next()
        await connection.send(request(1))

        assert await next_frame(connection) == {"jsonrpc": "2.0", "result": ["a.js"], "id": 1}
        assert connection.request is not None
        assert (connection.request.path, connection.request.headers["Origin"]) == ("/", PAGE)
        assert (game.is_connected, game.closed) == (True, None)
        assert [asked["method"] for asked in game.requests] == ["getFileNames"]


async def test_the_desktop_build_sends_no_origin() -> None:
    async with listening() as server, Game() as game:
        await game.dial(server.url)
        connection = await server.next()

        assert connection.request is not None
        assert "Origin" not in connection.request.headers


async def test_binary_frames_and_broken_text_are_seen_and_not_answered() -> None:
    async with listening() as server, Game() as game:
        await game.dial(server.url)
        connection = await server.next()
        for frame in (request(1).encode(), "{bad json", "null", request(2)):
            await connection.send(frame)

        assert (await next_frame(connection))["id"] == 2
        assert game.requests[:3] == [request(1).encode(), "{bad json", "null"]


async def test_a_refusal_is_told_with_its_reason() -> None:
    def refuse(connection: ServerConnection, asked: Request) -> Response:
        return connection.respond(HTTPStatus.FORBIDDEN, "not you")

    async with listening(process_request=refuse) as server, Game() as game:
        assert not await game.dial(server.url)
        assert not game.is_connected
        assert game.closed == (1006, "server rejected WebSocket connection: HTTP 403")


async def test_the_code_and_reason_of_a_close_are_kept() -> None:
    async with listening() as server, Game() as game:
        await game.dial(server.url)
        connection = await server.next()
        await connection.close(1008, "another game is connected")

        assert await game.wait_closed() == (1008, "another game is connected")
        assert not game.is_connected


async def test_a_new_dial_gives_up_the_old_connection() -> None:
    async with listening() as server, Game() as game:
        await game.dial(server.url)
        first = await server.next()
        await game.dial(server.url)

        await asyncio.wait_for(first.wait_closed(), PATIENCE)
        assert first.close_code == 1001
        assert game.is_connected


async def test_a_cut_connection_ends_without_a_word() -> None:
    async with listening() as server, Game() as game:
        await game.dial(server.url)
        connection = await server.next()
        game.cut()

        await asyncio.wait_for(connection.wait_closed(), PATIENCE)
        assert connection.close_code == 1006
        assert await game.wait_closed() == (1006, "")


async def test_a_frozen_game_answers_no_ping_until_it_thaws() -> None:
    async with listening(ping_interval=None) as server, Game() as game:
        await game.dial(server.url)
        connection = await server.next()
        game.freeze()
        pong = await connection.ping()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(pong), 0.1)

        game.thaw()

        assert await asyncio.wait_for(pong, PATIENCE) >= 0


async def test_without_a_connection_there_is_nothing_to_end() -> None:
    game = Game()
    game.cut()
    game.freeze()
    game.thaw()
    await game.hang_up()

    assert await game.wait_closed() is None
    assert not await game.dial("ws://127.0.0.1:1")


async def test_fifty_megabytes_in_a_thousand_files_go_through() -> None:
    files = {f"file{number}.txt": "x" * 50_000 for number in range(1000)}
    async with listening() as server, Game(3, {"home": files}) as game:
        await game.dial(server.url)
        connection = await server.next()
        await connection.send(request(1, "getAllFiles", server="home"))
        reply = await next_frame(connection)

    assert sum(len(file["content"]) for file in reply["result"]) == 50_000_000


async def test_a_certificate_that_is_not_trusted_ends_the_dial() -> None:
    async with listening() as server, Game() as game:
        secure = server.url.replace("ws://", "wss://")

        assert not await game.dial(secure, trust=ssl.create_default_context())
