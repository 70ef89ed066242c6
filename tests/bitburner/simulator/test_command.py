"""`bridgehead bitburner simulate` as a process: what a person sees of a simulated game, and how it ends."""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.bitburner.simulator.listening import listening, request, said
from tests.support import endable
from tests.support.waiting import PATIENCE

LIMIT = PATIENCE


@asynccontextmanager
async def simulated(*arguments: str, output: int = PIPE) -> AsyncIterator[Process]:
    """Run the command; it has to end with the test at the latest."""
    process = await asyncio.create_subprocess_exec(
        *(*endable.words_for("bridgehead"), "bitburner", "simulate", *arguments),
        stdin=PIPE,
        stdout=output,
        stderr=output,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            await asyncio.wait_for(process.wait(), LIMIT)


async def ended(process: Process) -> tuple[int, str]:
    """Return how a process ended and what it said that was not read yet."""
    async with asyncio.timeout(LIMIT):
        said_last, wrong = await process.communicate()
    return process.returncode or 0, (said_last + wrong).decode()


async def until(process: Process, text: str) -> str:
    """Read up to the line that holds a text, and return it."""
    assert process.stdout is not None
    async with asyncio.timeout(LIMIT):
        while line := (await process.stdout.readline()).decode():
            if text in line:
                return line.rstrip()
    raise EOFError(text)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
async def test_it_shows_what_is_asked_and_ends_when_told(stop: signal.Signals) -> None:
    async with listening() as server, simulated("--url", server.url) as game:
        connection = await server.next()
        await connection.send(request(1))
        await said(connection)
        await connection.send(request(2, "getFile", filename="no.js", server="home"))
        await connection.send("nothing")

        assert await until(game, "getFileNames") == "getFileNames home → 36 bytes"
        assert await until(game, "getFile ") == "getFile no.js@home → File does not exist. Filename: no.js"
        assert await until(game, "nothing") == "no request: 'nothing' → no reply"
        endable.send_from_loop(game, stop)
        assert await ended(game) == (0, "")
        await asyncio.wait_for(connection.wait_closed(), LIMIT)
        assert connection.close_code == 1001


async def test_the_third_generation_dials_again_after_a_drop() -> None:
    async with listening() as server, simulated("--url", server.url, "--reconnect", "0.01") as game:
        await (await server.next()).close(1013, "later")
        second = await server.next()
        await second.send(request(1))

        assert (await said(second))["id"] == 1
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
        waiting = await until(game, "Nobody")
        endable.send_from_loop(game, signal.SIGTERM)

        assert waiting.startswith("Nobody to talk to at ws://127.0.0.1:1 yet: ")
        assert await ended(game) == (0, "")


async def test_home_holds_the_files_of_a_folder_that_a_game_can_hold(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "scan.js").write_bytes(b"ns.scan()\n")
    (tmp_path / "raw.txt").write_bytes(b"\xff")
    (tmp_path / "two words.js").touch()
    (tmp_path / "photo.png").touch()
    async with listening() as server, simulated("--url", server.url, "--files", str(tmp_path)) as game:
        connection = await server.next()
        await connection.send(request(1, "getAllFiles", server="home"))

        assert (await said(connection))["result"] == [{"filename": "lib/scan.js", "content": "ns.scan()\n"}]
        assert (await until(game, "Left out")).endswith("photo.png, raw.txt, two words.js")


async def test_faults_are_shown_beside_what_they_befall() -> None:
    faults = ("--faults", "drop,times=2", "--reconnect", "0.01", "--origin", "")
    async with listening() as server, simulated("--url", server.url, *faults) as game:
        for _ in range(2):
            await (await server.next()).send(request(1))
        third = await server.next()
        await third.send(request(3))

        assert (await said(third))["id"] == 3
        assert await until(game, "cut") == "getFileNames home → the connection is cut  [drop]"


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


async def test_on_a_terminal_all_is_on_one_screen() -> None:
    ours, theirs = os.openpty()
    try:
        async with listening() as server, simulated("--url", server.url, output=theirs) as game:
            connection = await server.next()
            await connection.send(request(1))
            await said(connection)
            endable.send_from_loop(game, signal.SIGTERM)
            await asyncio.wait_for(game.wait(), LIMIT)
        shown = os.read(ours, 65536).decode()
    finally:
        os.close(ours)
        os.close(theirs)

    assert "A simulated game of generation 3" in shown
    assert "Requests so far: 1" in shown
    assert "getFileNames home → " in shown
