"""A bridge that stays: it keeps the game connected while agents come and go."""

import asyncio
import signal
import sys
from pathlib import Path

from tests.bitburner.playing import FILES
from tests.bitburner.serving import HOST, environment, serving
from tests.support.game import Game
from tests.support.ports import free_port
from tests.support.stdio_peer import ROOT
from tests.support.waiting import PATIENCE


async def test_the_game_stays_connected_to_a_host_while_agents_come_and_go(tmp_path: Path) -> None:
    port = free_port()
    variables = environment(tmp_path / "state", port)
    resident = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bridgehead", "serve", "--bridges", "bitburner", "--port", "0"),
        cwd=ROOT,
        env=variables,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with Game(2, FILES) as game:
            async with asyncio.timeout(PATIENCE):
                while not await game.dial(f"ws://{HOST}:{port}"):
                    await asyncio.sleep(0.05)
            for turn in range(2):
                with serving(tmp_path / f"stderr{turn}", variables) as agent:
                    await agent.until(role="guest", state="connected")
                    await agent.call("write_file", filename=f"{turn}.txt", content="1")
                    agent.peer.process.kill()
                    agent.peer.process.wait(PATIENCE)

            assert game.is_connected
            assert {"0.txt", "1.txt"} <= set(game.servers["home"])
    finally:
        resident.send_signal(signal.SIGTERM)
        await resident.wait()
