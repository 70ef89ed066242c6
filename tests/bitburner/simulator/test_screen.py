"""Screen: a person sees what the game is asked, and what became of it."""

import asyncio
import os
import signal

from tests.bitburner.simulator.listening import listening, next_frame, request
from tests.bitburner.simulator.simulating import LIMIT, simulated, until
from tests.support import endable


async def test_faults_are_shown_beside_what_they_befall() -> None:
    faults = ("--faults", "drop,times=2", "--reconnect", "0.01", "--origin", "")
    async with listening() as server, simulated("--url", server.url, *faults) as game:
        for _ in range(2):
            await (await server.next()).send(request(1))
        third = await server.next()
        await third.send(request(3))

        assert (await next_frame(third))["id"] == 3
        assert await until(game, "cut") == "getFileNames home → the connection is cut  [drop]"


async def test_on_a_terminal_all_is_on_one_screen() -> None:
    ours, theirs = os.openpty()
    try:
        async with listening() as server, simulated("--url", server.url, output=theirs) as game:
            connection = await server.next()
            await connection.send(request(1))
            await next_frame(connection)
            endable.send_from_loop(game, signal.SIGTERM)
            await asyncio.wait_for(game.wait(), LIMIT)
        shown = os.read(ours, 65536).decode()
    finally:
        os.close(ours)
        os.close(theirs)

    assert "A simulated game of generation 3" in shown
    assert "Requests so far: 1" in shown
    assert "getFileNames home → " in shown
