"""Chaos: many calls at once while the game drops, stalls, answers out of order and returns garbage.

Every content tells whose it is, so that an answer which reached another call shows.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from websockets.asyncio.client import connect

from bridgehead.bitburner.errors import NOTHING_CHANGED
from bridgehead.bitburner.simulator import Faults
from tests.bitburner.playing import PAGE, Play, bridged, played
from tests.support.game import Game
from tests.support.waiting import PATIENCE, until

CALLS = 2000
AT_ONCE = 50
MOST_ROUNDS = 5
TIMEOUT_MS, WAIT_MS = 1000, 2000
TROUBLE = Faults(
    silence=0.02, late=0.05, delay=0.1, out_of_order=0.3, drop=0.002, garbage=0.25, nonsense=0.01
)
CLEAR = {"disconnected", "not_connected", "timeout", "odd_reply"}
"""Codes of the errors that trouble on the way may end in."""

COSTS = {"hack": 0.1, "grow": 0.15, "scan": 0.2, "scp": 0.6, "exec": 1.3, "getServer": 2.0, "spawn": 2.0}
FILES = {
    "home": {f"read{n}.txt": f"this is read{n}.txt" for n in range(100)},
    "n00dles": {f"ram{n}.js": f"ns.{name}()" for n, name in enumerate(COSTS)},
    "foodnstuff": {f"all{n}.txt": f"this is all{n}.txt" for n in range(20)},
}


class Caller:
    """Makes one call after the other, and knows what each must answer."""

    def __init__(self, play: Play, number: int, outcomes: Counter[str]) -> None:
        self._play = play
        self._random = Random(number)  # noqa: S311 - the same calls in every run
        self._own = f"own{number}.txt"
        self._outcomes = outcomes
        self._writes = 0
        self._unsure: set[str | None] = set()
        """Contents that a write left in doubt may still bring, once a stalled game goes on."""

    async def run(self, count: int) -> None:
        kinds = [self._read, self._read, self._missing, self._names, self._all, self._ram, self._write]
        for _ in range(count):
            await self._random.choice(kinds)()

    async def _read(self) -> None:
        name = f"read{self._random.randrange(100)}.txt"
        await self._expect_text("read_file", f"this is {name}", filename=name)

    async def _missing(self) -> None:
        name = f"missing{self._random.randrange(10**6)}.txt"
        result = await self._called("read_file", filename=name)
        problem = self._problem(result, {*CLEAR, "not_found"})
        assert problem is not None, result
        self._outcomes[problem["code"]] += 1

    async def _names(self) -> None:
        await self._expect_text("list_files", json.dumps(list(FILES["n00dles"])), server="n00dles")

    async def _all(self) -> None:
        files = [{"filename": name, "content": text} for name, text in FILES["foodnstuff"].items()]
        await self._expect_text("get_all_files", json.dumps(files), server="foodnstuff")

    async def _ram(self) -> None:
        number, cost = self._random.choice(list(enumerate(COSTS.values())))
        await self._expect_text(
            "calculate_ram", f"{round(1.6 + cost, 2):g}", filename=f"ram{number}.js", server="n00dles"
        )

    async def _write(self) -> None:
        """Write a file that is this caller's alone, so that what it holds afterwards is known."""
        self._writes += 1
        before = self._play.game.servers["home"].get(self._own)
        content = f"{self._own}, version {self._writes}"
        result = await self._called("write_file", filename=self._own, content=content)
        now = self._play.game.servers["home"].get(self._own)
        problem = self._problem(result, CLEAR)
        if problem is None:
            assert now == content
            self._unsure.clear()  # the game takes one after the other
        elif NOTHING_CHANGED in problem["message"]:
            assert now in {before, *self._unsure}
        else:
            self._unsure.add(content)
            assert now in {before, *self._unsure}
        self._outcomes["written" if problem is None else problem["code"]] += 1

    async def _expect_text(self, tool: str, expected: str, **arguments: Any) -> None:
        result = await self._called(tool, **arguments)
        problem = self._problem(result, CLEAR)
        if problem is None:
            assert _matches(result["content"][0]["text"], expected), (tool, arguments)
        self._outcomes["right" if problem is None else problem["code"]] += 1

    async def _called(self, tool: str, **arguments: Any) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await self._play.client.call(tool, arguments)

    def _problem(self, result: Any, codes: set[str]) -> Any:
        """Return the error of a result, which has to be one of these and say what to do next."""
        if not result.get("isError"):
            return None
        problem = result["structuredContent"]
        assert problem["code"] in codes, problem
        assert problem["next_step"]
        return problem


def _matches(text: str, expected: str) -> bool:
    return text == expected or (expected[0] == "[" and json.loads(text) == json.loads(expected))


@asynccontextmanager
async def disturbed(play: Play) -> AsyncIterator[None]:
    """Let the game hang for a while now and then, and dial again after each drop, as a player would."""

    async def disturb() -> None:
        for turn in range(10**6):
            if not play.game.is_connected:
                await play.game.dial(play.url, PAGE)
            elif turn % 20 == 0:
                play.game.freeze()
            elif turn % 20 == 3:
                play.game.thaw()
            await asyncio.sleep(0.02)

    task = asyncio.create_task(disturb())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _called_until_all_is_met(play: Play) -> tuple[Counter[str], int]:
    """Call in rounds until every kind of trouble has come up: on a busy machine one round may miss some."""
    outcomes: Counter[str] = Counter()
    callers = [Caller(play, number, outcomes) for number in range(AT_ONCE)]
    for rounds in range(1, MOST_ROUNDS + 1):
        async with disturbed(play), asyncio.TaskGroup() as running:
            for caller in callers:
                running.create_task(caller.run(CALLS // AT_ONCE))
        if all(count() > 0 for count in _trouble_counters(play).values()) and CLEAR - {
            "not_connected"
        } <= set(outcomes):
            return outcomes, rounds
    raise AssertionError({name: count() for name, count in _trouble_counters(play).items()}, outcomes)


def _trouble_counters(play: Play) -> dict[str, Callable[[], float]]:
    """Return what counts the trouble that the bridge has met."""
    return {
        "silence": lambda: play.count("rpc_timeouts_total"),
        "drops": lambda: play.count("ws_reconnects_total"),
        "malformed": lambda: play.count("bridgehead_bitburner_replies_ignored_total", "malformed"),
        "unsolicited": lambda: play.count("bridgehead_bitburner_replies_ignored_total", "unsolicited"),
    }


@pytest.mark.parametrize("number", [2, 3])
async def test_in_chaos_every_call_ends_with_its_own_answer_or_a_clear_error(
    tmp_path: Path, number: int
) -> None:
    times = {"RPC_TIMEOUT_MS": str(TIMEOUT_MS), "BITBURNER_CONNECT_WAIT_MS": str(WAIT_MS)}
    game = Game(number, FILES, TROUBLE, seed=number)
    async with played(tmp_path, game=game, MCP_LOG_LEVEL="error", **times) as play:
        tasks = len(asyncio.all_tasks())
        outcomes, rounds = await _called_until_all_is_met(play)

        assert outcomes.total() == rounds * CALLS
        assert outcomes["right"] + outcomes["written"] + outcomes["not_found"] > rounds * CALLS / 2

        game.faults = Faults()
        await game.dial(play.url, PAGE)
        await until(lambda: play.session.connection.link is not None)
        assert await play.ok("read_file", filename="read0.txt")
        link = play.session.connection.link
        assert link is not None
        await until(lambda: link.pending == 0)  # a new game is compared with what was written
        await until(lambda: len(asyncio.all_tasks()) <= tasks)


async def test_a_reply_repeated_over_a_reconnection_reaches_no_other_call(tmp_path: Path) -> None:
    async with bridged(tmp_path, BITBURNER_CONNECT_WAIT_MS="5000") as play:
        first = asyncio.create_task(play.ok("list_files"))
        async with connect(play.url) as socket:
            old = _reply(await socket.recv(), ["old.js"])
            await socket.send(old)
            assert (await first)[1] == {"files": ["old.js"]}
        await until(lambda: play.session.connection.link is None)
        second = asyncio.create_task(play.ok("list_files"))
        async with connect(play.url) as socket:
            request = await socket.recv()
            await socket.send(old)
            await socket.send(_reply(request, ["new.js"]))

            assert (await second)[1] == {"files": ["new.js"]}


def _reply(request: str | bytes, result: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "result": result, "id": json.loads(request)["id"]})
