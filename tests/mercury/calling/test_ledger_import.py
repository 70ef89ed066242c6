"""What version 0.1 counted today is taken over once, and its file is kept."""

import json
from pathlib import Path

import pytest

from bridgehead.mercury.calling.budget import Amounts, Budget, BudgetLimits
from bridgehead.mercury.calling.ledger_import import IMPORTED_FILE, OLD_FILE
from bridgehead.mercury.calling.usage import Usage, UsageCounts
from bridgehead.runtime.errors import StorageError
from tests.mercury.calling.clock import GivenClock
from tests.mercury.calling.test_budget import committed_by
from tests.mercury.calling.test_usage_store import LEDGER, open_store, rows


async def test_the_day_goes_on_where_version_0_1_left_it(tmp_path: Path) -> None:
    (tmp_path / OLD_FILE).write_text(json.dumps(LEDGER))
    clock = GivenClock()
    for _ in range(2):
        async with open_store(tmp_path, clock) as store:
            assert await Usage(store).today() == {
                "mercury-2": UsageCounts(calls=3, total_tokens=30, cost_usd=0.2)
            }
            assert await committed_by(Budget(store, clock, BudgetLimits(Amounts(1.0)))) == 0.25

    assert json.loads((tmp_path / IMPORTED_FILE).read_text()) == LEDGER
    assert not (tmp_path / OLD_FILE).exists()


async def test_a_file_that_was_taken_over_but_not_renamed_does_not_count_twice(tmp_path: Path) -> None:
    clock = GivenClock()
    for _ in range(2):
        (tmp_path / OLD_FILE).write_text(json.dumps(LEDGER))
        async with open_store(tmp_path, clock) as store:
            assert (await Usage(store).today())["mercury-2"].calls == 3


async def test_what_an_old_process_writes_later_is_added(tmp_path: Path) -> None:
    clock = GivenClock()
    for committed in (0.25, 0.5):
        (tmp_path / OLD_FILE).write_text(json.dumps({**LEDGER, "committed_usd": committed}))
        async with open_store(tmp_path, clock) as store:
            await Usage(store).today()

    assert rows(tmp_path, "SELECT committed_usd FROM spending") == [(0.75,)]


async def test_another_day_is_history_and_no_part_of_today(tmp_path: Path) -> None:
    (tmp_path / OLD_FILE).write_text(json.dumps({**LEDGER, "day": "2026-09-20"}))
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        assert await committed_by(Budget(store, clock, BudgetLimits(Amounts(1.0)))) == 0.0
        assert await Usage(store).today() == {}

    assert rows(tmp_path, "SELECT day, calls FROM usage") == [("2026-09-20", 3)]


async def test_a_file_that_cannot_be_read_is_named_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / OLD_FILE).write_text("{ not json")
    clock = GivenClock()
    async with open_store(tmp_path, clock) as store:
        with pytest.raises(StorageError, match=OLD_FILE):
            await Budget(store, clock, BudgetLimits(Amounts(1.0))).reserve("me", 0.1)

    assert (tmp_path / OLD_FILE).read_text() == "{ not json"
