"""`bridgehead bitburner simulate` as a process: what a person sees of a simulated game, and how it ends."""

import asyncio
import signal
from asyncio.subprocess import Process

import pytest

from tests.bitburner.simulator.listening import listening, next_frame, request
from tests.bitburner.simulator.simulating import LIMIT, simulated, until
from tests.support import endable


async def ended(process: Process) -> tuple[int, str]:
    """Return how a process ended and what it said that was not read yet."""
    async with asyncio.timeout(LIMIT):
        said_last, wrong = await process.communicate()
    return process.returncode or 0, (said_last + wrong).decode()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
async def test_it_shows_what_is_asked_and_ends_when_told(stop: signal.Signals) -> None:
    async with listening() as server, simulated("--url", server.url) as game:
        connection = await server.next()
        await connection.send(request(1))
        await next_frame(connection)
        await connection.send(request(2, "getFile", filename="no.js", server="home"))
        await connection.send("nothing")

        assert await until(game, "getFileNames") == "getFileNames home → 61 bytes"
        assert await until(game, "getFile ") == "getFile no.js@home → File does not exist. Filename: no.js"
        assert await until(game, "nothing") == "no request: 'nothing' → no reply"
        endable.send_from_loop(game, stop)
        assert await ended(game) == (0, "")
        await asyncio.wait_for(connection.wait_closed(), LIMIT)
        assert connection.close_code == 1001


@pytest.mark.parametrize("listen", ["12541", "127.0.0.1:12541"])
async def test_it_dials_where_a_bridge_with_the_same_settings_listens(
    monkeypatch: pytest.MonkeyPatch, listen: str
) -> None:
    monkeypatch.setenv("BITBURNER_LISTEN", listen)
    async with simulated() as game:
        assert await until(game, "Dialling") == "Dialling ws://127.0.0.1:12541"


async def test_the_third_generation_dials_again_after_a_drop() -> None:
    async with listening() as server, simulated("--url", server.url, "--reconnect", "0.01") as game:
        await (await server.next()).close(1013, "later")
        second = await server.next()
        await second.send(request(1))

        assert (await next_frame(second))["id"] == 1
        assert await until(game, "Disconnected") == "Disconnected: later (1013)"


async def test_the_second_generation_does_not_dial_again() -> None:
    async with listening() as server, simulated("--url", server.url, "--generation", "2") as game:
        await (await server.next()).close()
        status, text = await ended(game)

    assert status == 0
    assert text.splitlines()[-2:] == [
        "Disconnected: no reason given (1000)",
        "Generation 2 does not dial again by itself; --reconnect 2 would.",
    ]


async def test_it_waits_for_someone_to_listen_and_can_be_stopped_meanwhile() -> None:
    async with simulated("--url", "ws://127.0.0.1:1") as game:
        waiting = await until(game, "No bridge")
        endable.send_from_loop(game, signal.SIGTERM)

        assert waiting.rstrip() == "No bridge at ws://127.0.0.1:1 yet: nothing listens there"
        assert await ended(game) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        (["--url", "http://127.0.0.1"], "'http://127.0.0.1' is no address of a WebSocket. Usage:"),
        (["--faults", "rain"], "Use a list such as late=0.3,delay=1,drop=0.05"),
        (["--files", "/no/such/folder"], "Name one that is there with --files."),
        (["--generation", "4"], "--generation does not take 4. Valid values are 2, 3."),
    ],
)
async def test_a_wrong_option_is_one_line_that_says_what_would_be_right(
    arguments: list[str], right: str
) -> None:
    async with simulated(*arguments) as game:
        status, text = await ended(game)

    assert status == 2
    assert right in text
    assert text.count("\n") == 1
