"""Dialling: BITBURNER_RPC_URL, its backoff, and giving up."""

import asyncio
import json
from pathlib import Path

from websockets.asyncio.server import ServerConnection, serve

from bridgehead.bitburner.game.sockets import RELAY_PATH
from tests.bitburner.playing import FILES, bridged
from tests.bitburner.serving import HOST
from tests.support.game import World, answer
from tests.support.ports import free_port
from tests.support.waiting import until


class Served:
    """A relay of another make: it listens, and answers for a game."""

    def __init__(self) -> None:
        self.sockets: list[ServerConnection] = []
        self._world = World(3, FILES)

    async def __call__(self, socket: ServerConnection) -> None:
        self.sockets.append(socket)
        async for frame in socket:
            assert isinstance(frame, str)
            said = answer(self._world, frame.encode())
            assert said is not None
            await socket.send(said, text=True)


async def test_the_address_is_dialled_and_dialled_again_after_a_drop(tmp_path: Path) -> None:
    served = Served()
    async with serve(served, HOST, 0) as server:
        url = f"ws://{HOST}:{next(iter(server.sockets)).getsockname()[1]}"
        async with bridged(tmp_path, BITBURNER_RPC_URL=url, BITBURNER_CONNECT_WAIT_MS="5000") as play:
            assert len(json.loads((await play.ok("list_files"))[0])) == 3
            _, status = await play.ok("connection_status")
            assert (status["role"], status["address"], status["generation"]) == ("dialler", url, "3.x")

            await served.sockets[0].close()
            await until(lambda: len(served.sockets) == 2)
            assert len(json.loads((await play.ok("list_files"))[0])) == 3
            assert play.count("ws_reconnects_total") == 1


async def test_an_address_that_appears_later_is_found(tmp_path: Path) -> None:
    port = free_port()
    async with bridged(tmp_path, BITBURNER_RPC_URL=f"ws://{HOST}:{port}") as play:
        text, _ = await play.fails("list_files")
        assert f"ws://{HOST}:{port} cannot be reached" in text
        async with serve(Served(), HOST, port):
            await until(lambda: play.session.connection.link is not None)
            assert json.loads((await play.ok("list_files"))[0])


async def test_dialling_is_given_up_after_so_many_tries(tmp_path: Path) -> None:
    url = f"ws://{HOST}:{free_port()}"
    async with bridged(tmp_path, BITBURNER_RPC_URL=url, RPC_RECONNECT_MAX_ATTEMPTS="3") as play:
        await until(lambda: "given up" in play.session.connection.problem)
        text, problem = await play.fails("list_files")

    assert "in 3 tries" in text
    assert "start the bridge again" in text
    assert problem["code"] == "not_connected"


async def test_a_relay_path_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    async with serve(Served(), HOST, 0) as server:
        url = f"ws://{HOST}:{next(iter(server.sockets)).getsockname()[1]}"
        async with bridged(tmp_path, BITBURNER_RPC_URL=url + RELAY_PATH) as play:
            await until(lambda: bool(play.session.connection.problem))
            text, _ = await play.fails("list_files")

    assert "not a bridge" in text


async def test_what_answers_without_speaking_websocket_is_told(tmp_path: Path) -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, HOST, 0)
    async with server:
        url = f"ws://{HOST}:{server.sockets[0].getsockname()[1]}"
        async with bridged(tmp_path, BITBURNER_RPC_URL=url) as play:
            await until(lambda: bool(play.session.connection.problem))
            text, _ = await play.fails("list_files")

    assert "cannot be reached" in text


async def test_a_password_in_the_address_is_shown_to_nobody(tmp_path: Path) -> None:
    url = f"ws://me:hush-hush@{HOST}:{free_port()}"
    async with bridged(tmp_path, BITBURNER_RPC_URL=url) as play:
        text, _ = await play.fails("list_files")
        status, _ = await play.ok("connection_status")

    assert "cannot be reached" in text
    assert "hush-hush" not in text + status
    assert "hush-hush" not in str(dict(play.session.settings.summary()))
