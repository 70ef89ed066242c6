"""Rate windows: of one process, and of all replicas, which together let through what one would."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.runtime.stores import StoreUnavailable
from bridgehead.runtime.stores.rate_windows import Asked, SharedWindows, Window
from bridgehead.runtime.stores.redis import Redis
from tests.runtime.stores.test_redis import connected
from tests.support.proxy import proxied
from tests.support.redis_server import RedisServer, running_redis
from tests.support.waiting import PATIENCE, until

MINUTE, HOUR = 60.0, 3600.0


# --- of one process ----------------------------------------------------------------------------------------


def test_a_window_is_full_at_its_limit_and_not_before() -> None:
    window = Window(2, 60.0)
    assert window.delay(2, 0.0) == 0.0
    window.take(1, 0.0)
    assert window.delay(1, 0.0) == 0.0
    window.take(1, 0.0)
    assert window.delay(1, 59.9995) == 0.001  # never nothing while there is no room
    assert window.delay(3, 30.0) == 60.0  # there is never room for that


def test_a_window_has_room_again_exactly_when_the_oldest_leaves_it() -> None:
    window = Window(10, 60.0)
    window.take(4, 100.0)
    window.take(6, 110.0)

    assert (window.left(120.0), window.delay(0, 120.0)) == (0.0, 0.0)
    assert [window.delay(amount, 120.0) for amount in (1, 4, 5, 10)] == [40.0, 40.0, 50.0, 50.0]
    assert window.left(159.9) == 0.0
    assert window.delay(4, 160.0) == 0.0
    assert window.left(160.0) == 4.0
    assert not window.is_idle(169.9)
    assert window.is_idle(170.0)
    assert window.left(170.0) == 10.0


def test_what_was_used_replaces_what_was_taken_while_it_is_in_the_window() -> None:
    window = Window(10, 60.0)
    early, late = window.take(8, 0.0), window.take(2, 10.0)
    window.correct(early, 1)
    assert window.left(10.0) == 7.0
    assert window.left(60.0) == 8.0
    window.correct(early, 9)  # it has left the window, and counts no more
    assert window.left(60.0) == 8.0
    window.correct(late, 5)
    assert window.left(60.0) == 5.0
    assert window.is_idle(70.0)
    window.correct(late, 0)  # nothing is in the window at all
    window.take(10, 70.0)
    assert window.left(70.0) == 0.0


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


# --- of all replicas ---------------------------------------------------------------------------------------


@pytest.fixture
def windows(redis: Redis) -> SharedWindows:
    return SharedWindows(redis)


def ask(
    amounts: Sequence[int] = (1, 0),
    limits: Sequence[int] = (10, 100),
    name: str = "ada",
    seconds: float = HOUR,
) -> Asked:
    return Asked(name, seconds, limits, amounts)


async def age(redis: Redis, seconds: float, name: str = "ada") -> None:
    """Let time pass for what is in a window: no test waits for Redis's own clock."""
    key = f"bridgehead:window:{name}"
    for entry in await redis.call("ZRANGE", key, 0, -1):
        await redis.call("ZINCRBY", key, -seconds * 1e6, entry)


async def comes_to(windows: SharedWindows, totals: list[int]) -> None:
    """Wait until so much is taken: nobody waits for a correction."""
    async with asyncio.timeout(PATIENCE):
        while list(await windows.look(ask((0, 0)))) != totals:
            await asyncio.sleep(0.005)


async def test_replicas_together_let_through_what_one_would(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as here, connected(redis_server.url) as there:
        both = SharedWindows(here), SharedWindows(there)
        answers = await asyncio.gather(*(one.take([ask()]) for _ in range(30) for one in both))

    waits = [answer.wait for answer in answers]
    assert waits.count(0.0) == 10
    assert all(HOUR / 2 < wait <= HOUR for wait in waits if wait)


async def test_room_is_taken_in_every_window_or_in_none(windows: SharedWindows) -> None:
    await windows.take([ask(limits=(1, 0), name="server")])
    refused = await windows.take([ask(), ask(limits=(1, 0), name="server")])

    assert (refused.wait > 0, refused.blocking) == (True, 1)
    assert list(refused.totals) == [0, 0, 1, 0]
    assert list(await windows.look(ask((0, 0)))) == [0, 0]


@pytest.mark.parametrize("blocking", [0, 1])
async def test_of_two_limits_in_the_way_the_one_that_takes_longer_is_told(
    windows: SharedWindows, redis: Redis, blocking: int
) -> None:
    both = [ask((1, 0), limits=(1, 0), name=name) for name in ("first", "second")]
    await windows.take(both)
    await age(redis, HOUR / 2, both[1 - blocking].name)
    refused = await windows.take(both)

    assert refused.blocking == blocking
    assert HOUR / 2 < refused.wait <= HOUR


async def test_each_limit_has_a_window_of_its_own_length(windows: SharedWindows, redis: Redis) -> None:
    both = [ask(limits=(1, 0), name=name, seconds=seconds) for name, seconds in (("a", MINUTE), ("b", HOUR))]
    await windows.take(both)
    for name in ("a", "b"):
        await age(redis, HOUR / 2, name)

    assert not (await windows.take(both[:1])).wait
    assert 0 < (await windows.take(both[1:])).wait <= HOUR / 2


async def test_what_was_used_takes_the_place_of_what_was_taken(windows: SharedWindows) -> None:
    taken = await windows.take([ask((1, 90))])
    assert (await windows.take([ask((1, 20))])).wait > 0
    windows.correct(taken, [None, 8])
    windows.correct(taken, [None, 8])

    await comes_to(windows, [1, 8])
    assert not (await windows.take([ask((1, 92))])).wait


async def test_what_was_used_of_something_that_was_not_asked_for_is_not_counted(
    windows: SharedWindows,
) -> None:
    taken = await windows.take([ask((1, 0), limits=(10, 0))])
    windows.correct(taken, [0, 50])

    await comes_to(windows, [0, 0])


async def test_what_is_not_limited_is_never_in_the_way(windows: SharedWindows) -> None:
    waits = [(await windows.take([ask((1, 0), limits=(0, 5))])).wait for _ in range(20)]

    assert waits == [0.0] * 20


async def test_there_is_room_again_when_the_oldest_has_left_the_window(
    windows: SharedWindows, redis: Redis
) -> None:
    await windows.take([ask((10, 50))])
    assert (await windows.take([ask()])).wait
    await age(redis, HOUR)

    assert not (await windows.take([ask((10, 100))])).wait
    assert list(await windows.look(ask((0, 0)))) == [10, 100]


async def test_a_correction_of_what_has_left_the_window_changes_nothing(
    windows: SharedWindows, redis: Redis
) -> None:
    taken = await windows.take([ask((1, 50))])
    await age(redis, HOUR)
    await windows.take([ask((2, 60))])
    windows.correct(taken, [0, 0])
    await redis.call("PING")  # behind the correction

    assert list(await windows.look(ask((0, 0)))) == [2, 60]


async def test_what_took_nothing_of_one_thing_leaves_the_window_like_everything_else(
    windows: SharedWindows, redis: Redis
) -> None:
    await windows.take([ask((10, 0))])
    await age(redis, HOUR)

    assert list((await windows.take([ask((0, 5))])).totals) == [0, 0]
    assert list(await windows.look(ask((0, 0)))) == [0, 5]


async def test_the_wait_is_until_enough_has_left_and_no_longer(windows: SharedWindows, redis: Redis) -> None:
    await windows.take([ask((4, 0))])
    await age(redis, HOUR / 2)
    await windows.take([ask((6, 0))])
    few, many = await windows.take([ask((4, 0))]), await windows.take([ask((5, 0))])

    assert 0 < few.wait <= HOUR / 2 < many.wait <= HOUR


async def test_looking_leaves_nothing_behind(windows: SharedWindows, redis_server: RedisServer) -> None:
    assert list(await windows.look(ask((3, 4)))) == [0, 0]

    assert b"bridgehead:window" not in redis_server.command("KEYS", "*")


async def test_somebody_who_left_while_asking_holds_no_room(windows: SharedWindows) -> None:
    asking = asyncio.create_task(windows.take([ask((10, 100))]))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    await comes_to(windows, [0, 0])


async def test_what_is_sent_again_because_its_answer_was_lost_counts_once(redis_server: RedisServer) -> None:
    async with (
        proxied(redis_server.port) as proxy,
        connected(proxy.through(redis_server.url)) as redis,
    ):
        windows = SharedWindows(redis)
        proxy.cut_answer_to = lambda sent: b"EVAL" in sent
        taken = await windows.take([ask((10, 40))])

        assert (proxy.cuts, taken.wait) == (1, 0.0)
        assert list(await windows.look(ask((0, 0)))) == [10, 40]


async def test_nothing_is_kept_longer_than_a_window(windows: SharedWindows, redis: Redis) -> None:
    await windows.take([ask()])
    kept = await redis.call("KEYS", "bridgehead:window:*")
    left = [await redis.call("PTTL", key) for key in kept]

    assert len(kept) == 2
    assert all(0 < milliseconds <= (HOUR + 1) * 1000 for milliseconds in left)


async def test_without_redis_the_caller_decides(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        async with connected(server.url) as redis:
            server.kill()
            windows = SharedWindows(redis)
            with pytest.raises(StoreUnavailable):
                await windows.take([ask()])
            await until(lambda: not redis.is_up)
            with pytest.raises(StoreUnavailable):
                await windows.look(ask())
