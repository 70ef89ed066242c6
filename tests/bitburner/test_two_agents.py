"""Several agents, one game: whatever was answered OK is current or kept, even if the owner is killed."""

import asyncio
import contextlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from bridgehead.bitburner.changes.history import History
from bridgehead.runtime.timing import SystemClock
from tests.bitburner.playing import settings, versions_of
from tests.bitburner.serving import HOST, Bridge, environment, serving
from tests.support.game import Game
from tests.support.ports import free_port

PROCESSES = 4
CHANGES = int(os.environ.get("AGENT_CHANGES", "240"))
"""The figure in the documents is that of 1,000."""
SHARED = ("a.txt", "b.txt")


class Agent:
    """One process with its client, and what it was answered."""

    def __init__(self, number: int, bridge: Bridge) -> None:
        self.number = number
        self.bridge = bridge
        self.contents: list[tuple[str, str]] = []
        self.edits: list[str] = []
        self.counted = 0
        self.unknown = 0
        self.outcomes: Counter[str] = Counter()

    async def work(self, jobs: "asyncio.Queue[int]") -> None:
        while not jobs.empty():
            number = jobs.get_nowait()
            try:
                await (self._write, self._edit, self._count)[number % 3](number)
            except Exception:  # noqa: BLE001 - the process was killed in the middle
                return

    async def _write(self, number: int) -> None:
        name, content = SHARED[number % 2], f"{number} by {self.number} " * 5
        if self._take(await self.bridge.call("write_file", filename=name, content=content)):
            self.contents.append((name, content))

    async def _edit(self, number: int) -> None:
        arguments = {"filename": "edits.txt", "old_text": f"<{number}>", "new_text": f"({number})"}
        if self._take(await self.bridge.call("edit_file", **arguments)):
            self.edits.append(f"({number})")

    async def _count(self, _: int) -> None:
        seen = (await self.bridge.call("read_file", filename="count.txt"))["content"][0]["text"]
        if seen.isdecimal():
            arguments = {"filename": "count.txt", "content": str(int(seen) + 1), "if_match": seen}
            self.counted += self._take(await self.bridge.call("write_file", **arguments))

    def _take(self, result: Any) -> bool:
        if not result.get("isError"):
            self.outcomes["ok"] += 1
            return True
        self.outcomes[result["structuredContent"]["code"]] += 1
        self.unknown += "not known whether" in result["content"][0]["text"]
        return False


async def play(game: Game, port: int) -> None:
    """Dial again whenever the connection is gone, as the third generation does."""
    while True:
        if not game.is_connected:
            await game.dial(f"ws://{HOST}:{port}")
        await asyncio.sleep(0.05)


async def test_everything_that_was_answered_is_current_or_kept_though_the_owner_is_killed(
    tmp_path: Path,
) -> None:
    port = free_port()
    variables = environment(tmp_path / "state", port, MCP_LOG_LEVEL="error")
    slots = " ".join(f"<{number}>" for number in range(CHANGES) if number % 3 == 1)
    game = Game(3, {"home": {"a.txt": "", "b.txt": "", "edits.txt": slots, "count.txt": "0"}})
    jobs: asyncio.Queue[int] = asyncio.Queue()
    for number in range(CHANGES):
        jobs.put_nowait(number)
    with contextlib.ExitStack() as processes:
        agents = []
        for number in range(PROCESSES):
            bridge = processes.enter_context(serving(tmp_path / f"stderr{number}", variables))
            await bridge.until(role="owner" if number == 0 else "guest")
            agents.append(Agent(number, bridge))
        async with game:
            playing = asyncio.create_task(play(game, port))
            working = [asyncio.create_task(agent.work(jobs)) for agent in agents]
            async with asyncio.timeout(300):
                while jobs.qsize() > CHANGES // 2:
                    await asyncio.sleep(0.01)
                agents[0].bridge.peer.process.kill()
                await asyncio.gather(*working)
            playing.cancel()

    total: Counter[str] = sum((agent.outcomes for agent in agents), Counter())
    assert total["ok"] > CHANGES * 0.6, total
    files = game.servers["home"]
    history = History(settings(tmp_path / "state"), SystemClock())
    kept = {name: {one.content for one in versions_of(history, name)} for name in SHARED}
    history.close()
    lost = [one for agent in agents for one in agent.contents if one[1] not in (*kept[one[0]], files[one[0]])]
    assert lost == []
    assert [one for agent in agents for one in agent.edits if one not in files["edits.txt"]] == []
    counted, unknown = sum(agent.counted for agent in agents), sum(agent.unknown for agent in agents)
    # A call whose answer went down with the owner may have counted, or not; and the killed one's last too.
    assert counted <= int(files["count.txt"]) <= counted + unknown + 1
    print(json.dumps({"outcomes": total, "counted": counted, "unknown": unknown}))  # noqa: T201 - for bench
