"""Deadlines: one timer for many limits, each kept to."""

import asyncio

import pytest

from bridgehead.bitburner.game.link import Deadlines
from tests.support.waiting import PATIENCE


async def test_each_future_fails_at_its_own_time_whatever_the_order() -> None:
    loop = asyncio.get_running_loop()
    deadlines, began = Deadlines(), loop.time()
    futures = {delay: loop.create_future() for delay in (0.06, 0.02, 0.04)}
    for delay, future in futures.items():
        deadlines.watch(future, began + delay)

    failed = {}
    for delay in sorted(futures):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(futures[delay], PATIENCE)
        failed[delay] = loop.time() - began

    assert all(at >= delay - 0.002 for delay, at in failed.items())


async def test_a_future_that_ended_is_left_alone() -> None:
    loop = asyncio.get_running_loop()
    deadlines = Deadlines()
    answered, forgotten, late = (loop.create_future() for _ in range(3))
    for future in (answered, forgotten):
        deadlines.watch(future, loop.time() + 0.01)
    deadlines.watch(late, loop.time() + 0.02)
    answered.set_result("in time")
    deadlines.forget(forgotten)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(late, PATIENCE)

    assert answered.result() == "in time"
    assert not forgotten.done()
