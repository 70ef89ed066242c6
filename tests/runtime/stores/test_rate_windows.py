"""The windows of all replicas: together they let through what one would, and give back what was not used."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.runtime.stores import StoreUnavailable
from bridgehead.runtime.stores.windows import Asked, SharedWindows, Window
from tests.runtime.stores.test_redis import connected
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import PATIENCE, until

MINUTE = 60.0


def ask(amounts: Sequence[int] = (1, 0), most: Sequence[int] = (10, 100), name: str = "ada") -> Asked:
    return Asked(name, most, amounts)


async def comes_to(windows: SharedWindows, totals: list[int]) -> None:
    """Wait until so much is taken: nobody waits for a correction."""
    async with asyncio.timeout(PATIENCE):
        while list(await windows.look(ask((0, 0)))) != totals:
            await asyncio.sleep(0.005)


async def test_replicas_together_let_through_what_one_would(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as here, connected(redis_server.url) as there:
        both = SharedWindows(here, MINUTE), SharedWindows(there, MINUTE)
        answers = await asyncio.gather(*(one.take([ask()]) for _ in range(30) for one in both))

    waits = [answer.wait for answer in answers]
    assert waits.count(0.0) == 10
    assert all(MINUTE - 10 < wait <= MINUTE for wait in waits if wait)


async def test_room_is_taken_in_every_window_or_in_none(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        windows = SharedWindows(redis, MINUTE)
        await windows.take([ask(most=(1, 0), name="server")])
        refused = await windows.take([ask(), ask(most=(1, 0), name="server")])

        assert (refused.wait > 0, refused.blocking) == (True, 1)
        assert list(await windows.look(ask((0, 0)))) == [0, 0]


async def test_what_was_used_takes_the_place_of_what_was_taken(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        windows = SharedWindows(redis, MINUTE)
        taken = await windows.take([ask((1, 90))])
        assert (await windows.take([ask((1, 20))])).wait > 0
        windows.correct(taken, [None, 8])

        await comes_to(windows, [1, 8])
        assert not (await windows.take([ask((1, 92))])).wait


async def test_what_is_not_limited_is_never_in_the_way(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        windows = SharedWindows(redis, MINUTE)
        waits = [(await windows.take([ask((1, 0), most=(0, 5))])).wait for _ in range(20)]

    assert waits == [0.0] * 20


async def test_there_is_room_again_when_the_oldest_has_left_the_window(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        windows = SharedWindows(redis, 0.2)
        await windows.take([ask((10, 50))])
        refused = await windows.take([ask()])
        assert 0 < refused.wait <= 0.2
        await asyncio.sleep(refused.wait)

        assert not (await windows.take([ask((10, 100))])).wait
        assert list(await windows.look(ask((0, 0)))) == [10, 100]


async def test_what_took_nothing_of_one_thing_leaves_the_window_like_everything_else(
    redis_server: RedisServer,
) -> None:
    async with connected(redis_server.url) as redis:
        windows = SharedWindows(redis, 0.2)
        await windows.take([ask((10, 0))])
        refused = await windows.take([ask()])
        await asyncio.sleep(refused.wait)

        assert list((await windows.take([ask((0, 5))])).totals) == [0, 0]
        assert list(await windows.look(ask((0, 0)))) == [0, 5]


async def test_the_wait_is_until_enough_has_left_and_no_longer(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        windows = SharedWindows(redis, MINUTE)
        first = await windows.take([ask((4, 0))])
        await asyncio.sleep(0.05)
        await windows.take([ask((6, 0))])
        few, many = await windows.take([ask((4, 0))]), await windows.take([ask((5, 0))])

    assert first.wait == 0
    assert many.wait - few.wait >= 0.04


async def test_looking_leaves_nothing_behind(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        assert list(await SharedWindows(redis, MINUTE).look(ask((3, 4)))) == [0, 0]

    assert b"bridgehead:window" not in redis_server.command("KEYS", "*")


async def test_somebody_who_left_while_asking_holds_no_room(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        windows = SharedWindows(redis, MINUTE)
        asking = asyncio.create_task(windows.take([ask((10, 100))]))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

        await comes_to(windows, [0, 0])


async def test_nothing_is_kept_longer_than_a_window(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as redis:
        await SharedWindows(redis, 0.1).take([ask()])
        kept = await redis.call("KEYS", "bridgehead:window:*")
        left = [await redis.call("PTTL", key) for key in kept]

    assert len(kept) == 2
    assert all(0 < milliseconds <= 1100 for milliseconds in left)


async def test_without_redis_the_caller_decides(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            server.kill()
            windows = SharedWindows(redis, MINUTE)
            with pytest.raises(StoreUnavailable):
                await windows.take([ask()])
            await until(lambda: not redis.is_up)
            with pytest.raises(StoreUnavailable):
                await windows.look(ask())


def test_there_is_room_until_the_limit_and_then_after_the_window() -> None:
    window = Window(2, 10.0)
    window.take(1, 0.0)
    window.take(1, 4.0)

    assert window.delay(1, 5.0) == 5.0
    assert window.delay(2, 5.0) == 9.0
    assert window.delay(1, 10.0) == 0.0
    assert window.left(10.0) == 1
    assert window.delay(3, 5.0) == 10.0  # there is never room for that


def test_what_was_not_used_is_given_back() -> None:
    window = Window(100, 10.0)
    entry = window.take(100, 0.0)
    assert window.left(1.0) == 0

    window.correct(entry, 30)

    assert window.left(1.0) == 70
    assert window.left(10.0) == 100


def test_a_correction_after_the_window_changes_nothing() -> None:
    window = Window(100, 10.0)
    entry = window.take(50, 0.0)
    assert window.is_idle(11.0)

    window.correct(entry, 0)
    window.take(100, 11.0)

    assert window.left(11.0) == 0


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(1, 6), st.integers(0, 6)), max_size=60))
def test_no_window_ever_holds_more_than_the_limit(steps: list[tuple[float, int, int]]) -> None:
    window, now, used = Window(10, 5.0), 0.0, []
    for pause, asked, really in steps:
        now += pause
        if window.delay(asked, now):
            continue
        entry = window.take(asked, now)
        window.correct(entry, min(asked, really))
        used.append((now, min(asked, really)))

    for start, _ in used:
        assert sum(amount for when, amount in used if start <= when < start + 5.0) <= 10


def test_a_window_has_room_again_exactly_when_the_oldest_leaves_it() -> None:
    window = Window(10, 60.0)
    window.take(4, 100.0)
    window.take(6, 110.0)

    assert (window.left(120.0), window.delay(0, 120.0)) == (0.0, 0.0)
    assert [window.delay(amount, 120.0) for amount in (1, 4, 5, 10)] == [40.0, 40.0, 50.0, 50.0]
    assert window.left(159.9) == 0.0
    assert window.left(160.0) == 4.0
    assert not window.is_idle(169.9)
    assert window.is_idle(170.0)
    assert window.left(170.0) == 10.0


def test_a_window_is_full_at_its_limit_and_not_before() -> None:
    window = Window(2, 60.0)
    assert window.delay(2, 0.0) == 0.0
    window.take(1, 0.0)
    assert window.delay(1, 0.0) == 0.0
    window.take(1, 0.0)
    assert window.delay(1, 59.9995) == 0.001  # never nothing while there is no room


def test_what_was_really_used_takes_the_place_of_what_was_held() -> None:
    window = Window(10, 60.0)
    early, late = window.take(8, 0.0), window.take(2, 10.0)
    window.correct(early, 1)
    assert window.left(10.0) == 7.0
    assert window.left(60.0) == 8.0
    window.correct(early, 9)  # it has left the window, and counts no more
    assert window.left(60.0) == 8.0
    window.correct(late, 5)
    assert window.left(60.0) == 5.0
