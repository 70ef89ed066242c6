"""Faults on demand: each does what it says, and the same seed does the same again."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection

from bridgehead.bitburner.simulator import Faults
from bridgehead.bitburner.simulator.faults import Dice, parse
from bridgehead.runtime.errors import InvalidArgument
from tests.bitburner.simulator.listening import LIMIT, Listening, listening, next_frame, request
from tests.support.game import Game


async def connected(server: Listening, game: Game) -> ServerConnection:
    await game.dial(server.url)
    return await server.next()


async def test_silence_is_no_reply_and_can_end() -> None:
    async with listening() as server, Game(faults=Faults(silence=1)) as game:
        connection = await connected(server, game)
        await connection.send(request(1))
        while not game.requests:
            await asyncio.sleep(0)
        game.faults = Faults()
        await connection.send(request(2))

        assert (await next_frame(connection))["id"] == 2


async def test_a_fault_can_befall_one_request_and_one_method_only() -> None:
    only_one = Faults(silence=1, only=frozenset({"getAllFiles"}), times=1)
    async with listening() as server, Game(faults=only_one) as game:
        connection = await connected(server, game)
        for number, method in enumerate(("getFileNames", "getAllFiles", "getAllFiles")):
            await connection.send(request(number, method))

        assert [(await next_frame(connection))["id"] for _ in range(2)] == [0, 2]


async def test_a_late_reply_is_overtaken() -> None:
    async with listening() as server, Game(faults=Faults(late=1, delay=0.05, times=1)) as game:
        connection = await connected(server, game)
        await connection.send(request(1))
        await connection.send(request(2))

        assert [(await next_frame(connection))["id"] for _ in range(2)] == [2, 1]


async def order(seed: int) -> list[int]:
    """Return the order of 24 replies out of order."""
    async with listening() as server, Game(faults=Faults(out_of_order=1), seed=seed) as game:
        connection = await connected(server, game)
        for number in range(24):
            await connection.send(request(number))
        return [(await next_frame(connection))["id"] for _ in range(24)]


async def test_replies_out_of_order_all_come_in_an_order_that_the_seed_decides() -> None:
    first, again, other = await order(1), await order(1), await order(2)

    assert sorted(first) == list(range(24))
    assert first != sorted(first)
    assert first == again != other


async def test_a_few_replies_out_of_order_do_not_wait_for_more() -> None:
    async with listening() as server, Game(faults=Faults(out_of_order=1)) as game:
        connection = await connected(server, game)
        await connection.send(request(1))

        assert (await next_frame(connection))["id"] == 1


async def test_a_drop_cuts_the_connection_and_leaves_the_request_undone() -> None:
    async with listening() as server, Game(files={}, faults=Faults(drop=1)) as game:
        connection = await connected(server, game)
        await connection.send(request(1, "pushFile", filename="a.js", content="", server="home"))

        assert await game.wait_closed() == (1006, "")
        assert game.servers["home"] == {}


def kind(frame: str | bytes) -> str:
    """Return what kind of garbage a frame is."""
    if isinstance(frame, bytes):
        return "binary"
    try:
        message: Any = json.loads(frame)
    except ValueError:
        return "malformed"
    if not isinstance(message, dict):
        return "no object"
    if not message.get("id"):
        return "no reply"
    return "stale" if message["id"] in range(1000, 2000) else "unsolicited"


async def test_garbage_of_every_kind_comes_before_the_right_replies() -> None:
    count = 60
    async with listening() as server, Game(faults=Faults(garbage=1)) as game:
        connection = await connected(server, game)
        for number in range(count):
            await connection.send(request(1000 + number))
        async with asyncio.timeout(LIMIT):
            frames = [await connection.recv() for _ in range(2 * count)]

    kinds = Counter(kind(frame) for frame in frames[::2])
    assert set(kinds) == {"binary", "malformed", "no object", "no reply", "stale", "unsolicited"}
    assert [json.loads(frame)["id"] for frame in frames[1::2]] == list(range(1000, 1000 + count))


async def test_nonsense_has_the_right_id_and_no_result_of_names() -> None:
    async with listening() as server, Game(faults=Faults(nonsense=1)) as game:
        connection = await connected(server, game)
        await connection.send(request(1, "getFile", filename="a.js", server="home"))
        reply = await next_frame(connection)

    assert reply["id"] == 1
    assert not isinstance(reply["result"], str)


async def test_a_huge_reply_is_the_right_one_with_padding() -> None:
    async with listening() as server, Game(2, {}, Faults(huge=1, padding=3_000_000)) as game:
        connection = await connected(server, game)
        await connection.send(request(1))
        await connection.send(request(2, "toString"))
        reply = await next_frame(connection)

        assert (reply["result"], len(reply["padding"])) == ([], 3_000_000)
        assert await next_frame(connection) == "[object Object]"


async def test_replies_that_wait_are_forgotten_with_the_connection() -> None:
    async with listening() as server:
        before = len(asyncio.all_tasks())  # not which: a loop of Windows accepts each time with another one
        async with Game(faults=Faults(late=1, delay=60)) as game:
            connection = await connected(server, game)
            await connection.send(request(1))
            while not game.requests:
                await asyncio.sleep(0)
        async with asyncio.timeout(LIMIT):
            while len(asyncio.all_tasks()) > before:
                await asyncio.sleep(0.001)

        assert game.closed == (1001, "")


def test_the_same_seed_draws_the_same_faults() -> None:
    faults = Faults(silence=0.3, drop=0.2, garbage=0.5)
    first, again = ([dice.draw("getFile") for _ in range(200)] for dice in (Dice(faults, 3), Dice(faults, 3)))

    assert first == again
    assert 30 < sum("silence" in drawn for drawn in first) < 90


def test_faults_are_read_from_a_line() -> None:
    assert parse("late=0.3, delay=1,silence") == Faults(late=0.3, delay=1, silence=1)
    assert parse("") == Faults()


@pytest.mark.parametrize("text", ["latte=1", "late=much", "delay"])
def test_a_line_that_names_no_fault_is_refused_with_what_would_be_right(text: str) -> None:
    with pytest.raises(InvalidArgument, match="late"):
        parse(text)


def test_a_share_is_from_none_to_all() -> None:
    with pytest.raises(InvalidArgument, match="share of drop is 2: expected a number from 0 to 1"):
        Faults(drop=2)
