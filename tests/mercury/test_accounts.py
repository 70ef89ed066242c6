"""Accounts: money that was held for a call which is gone, and the change of the day."""

import asyncio
import time
from pathlib import Path

import pytest
from filelock import FileLock

from bridgehead.mercury.accounts import Accounts
from bridgehead.mercury.ledger import Ledger

NOON = 1_790_000_000.0 // 86_400 * 86_400 + 43_200
DAY = 86_400.0


class GivenClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = NOON
        self.monotonic = time.monotonic

    def now(self) -> float:
        return self.time


async def test_money_held_for_a_call_that_is_cancelled_meanwhile_is_given_back(tmp_path: Path) -> None:
    clock = GivenClock()
    accounts = Accounts(lambda: Ledger(tmp_path, clock), clock, budget=1.0)
    with FileLock(tmp_path / "today.lock"):  # another process writes just now
        reserving = asyncio.create_task(accounts.reserve(0.4))
        await asyncio.sleep(0.05)
        reserving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reserving
    assert (await accounts.today()).committed_usd == 0.4  # its writing was under way and came to its end

    assert (await accounts.today()).committed_usd == 0.0
    await accounts.close()


async def test_what_was_held_yesterday_is_no_part_of_today(tmp_path: Path) -> None:
    clock = GivenClock()
    accounts = Accounts(lambda: Ledger(tmp_path, clock), clock, budget=1.0)
    held = await accounts.reserve(0.5)
    clock.time += DAY
    today = await accounts.reserve(0.3)

    accounts.settle(held, 0.1)

    assert (await accounts.today()).committed_usd == 0.3
    accounts.settle(today, 0.2)
    assert (await accounts.today()).committed_usd == pytest.approx(0.2)
    await accounts.close()
