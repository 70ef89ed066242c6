"""Two agents, one game: several processes share the port's owner's game, and outlive the owner."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from bridgehead.bitburner.game.sharing.peer_auth import Prover, load_key
from bridgehead.bitburner.game.sockets import RELAY_PATH, TIMEOUT
from bridgehead.bitburner.simulator import Faults
from bridgehead.runtime.timing import SystemClock
from tests.bitburner.game.sharing.test_peer_auth import visited
from tests.bitburner.playing import FILES, Play, bridged, played, settings
from tests.bitburner.serving import HOST, environment, serving
from tests.support.game import Game
from tests.support.ports import free_port
from tests.support.waiting import until


async def test_two_processes_work_with_one_game_and_the_second_outlives_the_first(tmp_path: Path) -> None:
    port = free_port()
    variables = environment(tmp_path / "state", port)
    with contextlib.ExitStack() as processes:
        first = processes.enter_context(serving(tmp_path / "first", variables))
        assert (await first.status())["role"] == "owner"
        second = processes.enter_context(serving(tmp_path / "second", variables))
        assert (await second.until(role="guest"))["state"] == "waiting"
        async with Game(3, FILES) as game:
            assert await game.dial(f"ws://{HOST}:{port}")
            assert json.loads(await first.text("list_files")) == json.loads(await second.text("list_files"))
            assert await second.text("write_file", filename="from/second.txt", content="2") == "OK"
            assert await first.text("read_file", filename="from/second.txt") == "2"
            assert (await first.status())["guests"] == 1

            first.peer.process.kill()
            first.peer.process.wait(10)
            await game.wait_closed()
            await second.until(role="owner")
            assert await game.dial(f"ws://{HOST}:{port}")

            assert await second.text("read_file", filename="from/second.txt") == "2"
            assert (await second.status())["reconnects"] == 1


async def test_when_the_owner_ends_one_guest_takes_over_and_the_others_share_with_it(tmp_path: Path) -> None:
    listen = f"{HOST}:{free_port()}"
    async with Game(2, FILES) as game, contextlib.AsyncExitStack() as stack:
        owner = contextlib.AsyncExitStack()
        first = await owner.enter_async_context(bridged(tmp_path, BITBURNER_LISTEN=listen))
        others = [
            await stack.enter_async_context(
                bridged(tmp_path, BITBURNER_LISTEN=listen, BITBURNER_CONNECT_WAIT_MS="5000")
            )
            for _ in range(3)
        ]
        roles = [one.session.connection.role for one in (first, *others)]
        assert roles == ["owner", "guest", "guest", "guest"]
        await owner.aclose()
        await until(
            lambda: sorted(one.session.connection.role for one in others) == ["guest", "guest", "owner"]
        )

        assert await game.dial(f"ws://{listen}")
        texts = {(await one.ok("list_files"))[0] for one in others}

    assert len(texts) == 1


@contextlib.asynccontextmanager
async def pair(state: Path, game: Game, **guest: Any) -> AsyncIterator[tuple[Play, Play]]:
    """An owner with a game, and a guest."""
    listen = f"{HOST}:{free_port()}"
    async with (
        played(state, game=game, BITBURNER_LISTEN=listen) as owner,
        bridged(state, BITBURNER_LISTEN=listen, BITBURNER_CONNECT_WAIT_MS="2000", **guest) as other,
    ):
        yield owner, other


async def test_a_guest_sees_the_games_errors_as_they_are(tmp_path: Path, generation: int) -> None:
    async with pair(tmp_path, Game(generation, FILES)) as (owner, guest):
        assert await guest.fails("read_file", filename="no.js") == await owner.fails(
            "read_file", filename="no.js"
        )
        assert await guest.ok("list_files") == await owner.ok("list_files")


async def test_a_guest_hears_of_a_drop_in_flight(tmp_path: Path) -> None:
    game = Game(3, FILES, Faults(silence=1.0))
    async with pair(tmp_path, game, RPC_TIMEOUT_MS="60000") as (owner, guest):
        call = asyncio.ensure_future(guest.fails("list_files"))
        await until(lambda: len(game.requests) == 1)
        game.cut()
        text, problem = await call

        assert "Bitburner disconnected" in text
        assert problem["code"] == "disconnected"
        await until(lambda: guest.session.connection.link is None)
        assert owner.session.connection.link is None


async def test_a_guests_own_time_limit_holds(tmp_path: Path) -> None:
    game = Game(3, FILES, Faults(silence=1.0))
    async with pair(tmp_path, game, RPC_TIMEOUT_MS="100") as (owner, guest):
        text, problem = await guest.fails("list_files")

        assert problem["code"] == "timeout"
        assert "getFileNames within 0.1" in text
        link = owner.session.connection.link
        assert link is not None
        await until(lambda: link.pending == 0)


async def test_a_guest_waits_until_the_owner_has_a_game(tmp_path: Path) -> None:
    listen = f"{HOST}:{free_port()}"
    async with (
        bridged(tmp_path, BITBURNER_LISTEN=listen) as owner,
        bridged(tmp_path, BITBURNER_LISTEN=listen, BITBURNER_CONNECT_WAIT_MS="50") as guest,
    ):
        text, _ = await guest.fails("list_files")
        assert "Options → Remote API" in text
        await owner.game.dial(owner.url)
        await until(lambda: guest.session.connection.link is not None)
        assert json.loads((await guest.ok("list_files"))[0])

        await owner.game.hang_up()
        await until(lambda: guest.session.connection.link is None)
        assert (await guest.fails("list_files"))[1]["code"] == "not_connected"


async def test_many_calls_of_two_guests_at_once_each_get_their_own_answer(tmp_path: Path) -> None:
    files = {"home": {f"f{number}.txt": f"content {number}" for number in range(100)}}
    async with (
        pair(tmp_path, Game(3, files, Faults(out_of_order=0.5))) as (owner, guest),
        bridged(
            tmp_path, BITBURNER_LISTEN=owner.session.connection.address, BITBURNER_CONNECT_WAIT_MS="2000"
        ) as third,
    ):
        sides = [owner, guest, third]
        answers = await asyncio.gather(
            *(sides[n % 3].ok("read_file", filename=f"f{n % 100}.txt") for n in range(300))
        )

    assert [text for text, _ in answers] == [f"content {n % 100}" for n in range(300)]


async def test_a_game_is_shared_over_wss_too(tmp_path: Path, certificate: Path) -> None:
    trust = ssl.create_default_context(cafile=certificate)
    secure: Any = {"BITBURNER_LISTEN": f"{HOST}:{free_port()}", "BITBURNER_TLS_CERT": str(certificate)}
    async with bridged(tmp_path, **secure) as owner, bridged(tmp_path, **secure) as guest:
        address = owner.session.connection.address.replace(HOST, "localhost")
        assert await owner.game.dial(f"wss://{address}", trust=trust)
        await until(lambda: guest.session.connection.link is not None)

        assert (await guest.ok("list_files"))[0] == (await owner.ok("list_files"))[0]
        assert guest.session.connection.role == "guest"


async def test_a_url_can_point_to_the_relay_of_another_bridge(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, FILES)) as owner:
        url = owner.url + RELAY_PATH
        async with bridged(tmp_path, BITBURNER_RPC_URL=url, BITBURNER_CONNECT_WAIT_MS="5000") as guest:
            assert await guest.ok("list_files") == await owner.ok("list_files")
            assert (await guest.ok("connection_status"))[1]["role"] == "dialler"


async def test_a_relay_passes_only_the_remote_api_on(tmp_path: Path) -> None:
    prover = Prover(load_key(settings(tmp_path)), SystemClock())
    async with played(tmp_path, game=Game(3, FILES)) as play:
        socket = await visited(play, {**prover.make_claim(), TIMEOUT: "1000"})
        async with socket:
            assert json.loads(await socket.recv())["params"]["connected"] is True
            await socket.send("not json")
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": "x", "method": "runScript", "params": {}}))
            refusal = json.loads(await socket.recv())

        assert (refusal["id"], refusal["error"]["code"]) == ("x", -32601)
        assert play.game.requests == []
