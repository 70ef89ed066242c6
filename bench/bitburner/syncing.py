"""What a player waits for: a folder and a simulated game in step, and one edit that reaches the game."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

from bridgehead.bitburner.game.counters import GameCounters
from bridgehead.bitburner.session import open_session
from bridgehead.bitburner.settings import BitburnerSettings
from bridgehead.bitburner.simulator import Game
from bridgehead.bitburner.sync.engine import Sync
from bridgehead.bitburner.sync.folder import Folder
from bridgehead.bitburner.sync.planning import Rules
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.timing import SystemClock

FILES = 200
CONTENT = "// a line of a script\n" * 136
EDITS = 15


@asynccontextmanager
async def started(folder: Path, game: Game) -> AsyncIterator[Sync]:
    """Connect a game to a bridge with a folder."""
    (folder / "scripts").mkdir()
    settings = BitburnerSettings(
        {
            "BITBURNER_LISTEN": "127.0.0.1:0",
            "BRIDGEHEAD_STATE_DIR": str(folder / "state"),
            "MCP_LOG_LEVEL": "error",
        }
    )
    async with open_session(settings, GameCounters(Metrics()), SystemClock()) as session, game:
        assert await game.dial(f"ws://{session.connection.address}")
        await session.connection.wait_for_game(10)
        yield Sync(session, Folder(folder / "scripts", ("home",)), Rules(), lambda _: None)


async def both_directions() -> float:
    """Bring as many files into step in each direction; seconds."""
    with tempfile.TemporaryDirectory() as home:
        there = {f"there/{number}.js": f"{CONTENT}{number}" for number in range(FILES)}
        async with started(Path(home), Game(3, {"home": there})) as sync:
            here = Path(home, "scripts", "here")
            here.mkdir()
            for number in range(FILES):
                (here / f"{number}.js").write_text(f"{CONTENT}{number}", encoding="utf-8")
            began = time.perf_counter()
            await sync.run_once()
            seconds = time.perf_counter() - began
            assert sync.files == 2 * FILES
            return seconds


async def edits() -> list[float]:
    """Edit a file beside many others; seconds until the game has it, each time."""
    with tempfile.TemporaryDirectory() as home:
        game = Game(3, {"home": {f"{number}.js": f"{CONTENT}{number}" for number in range(FILES)}})
        async with started(Path(home), game) as sync:
            await sync.run_once()
            running = asyncio.create_task(sync.run())
            await asyncio.sleep(1.0)
            taken = []
            for number in range(EDITS):
                content = f"// edit {number}\n"
                Path(home, "scripts", "0.js").write_text(content, encoding="utf-8")
                began = time.perf_counter()
                while game.servers["home"]["0.js"] != content:  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0.001)
                taken.append(time.perf_counter() - began)
                await asyncio.sleep(0.2)
            running.cancel()
            await asyncio.wait({running})
            return taken


async def measure(rounds: int) -> tuple[float, float]:
    """Return the medians in milliseconds: both directions, and one edit."""
    directions = [await both_directions() for _ in range(rounds)]
    return median(directions) * 1000, median(await edits()) * 1000
