"""Usage: every call is counted once, in the sum since the start and in that of all processes."""

from pathlib import Path

import pytest

from bridgehead.mercury.calling import usage as usage_module
from bridgehead.mercury.calling.usage import OTHER_CLIENTS, Span, SteadyClock, Usage, UsageCounts, utc_day
from bridgehead.mercury.completion import Metadata, Tokens
from tests.mercury.calling.books import DAY, NOON
from tests.mercury.calling.test_sqlite_usage import open_store
from tests.support.clock import Clock

SPAN = Span("2026-01-01", "2027-01-01")


def answer(cost: float | None, tokens: int = 3) -> Metadata:
    return Metadata(
        model="mercury-2", usage=Tokens(tokens, tokens, 2 * tokens), finish_reason="stop", cost_usd=cost
    )


def test_a_span_has_as_many_days_as_it_says_and_ends_today() -> None:
    assert Span.ending("2026-03-01", 1) == Span("2026-03-01", "2026-03-01")
    assert Span.ending("2026-03-01", 30) == Span("2026-01-31", "2026-03-01")


def test_a_day_begins_at_midnight_utc_and_is_worked_out_once() -> None:
    times = (NOON, NOON + DAY / 2 - 1, NOON + DAY / 2, NOON + DAY, NOON)

    assert [utc_day(time)[-2:] for time in times] == ["21", "21", "22", "22", "21"]
    assert utc_day(NOON + 60) is utc_day(NOON)


def test_counts_add_up_without_the_noise_of_small_numbers() -> None:
    total = UsageCounts()
    for _ in range(10):
        total.add(UsageCounts(1, 1, 1, 2, 3, 5, 0.1, 1, 1, 0.1, 0.1))

    assert total == UsageCounts(10, 10, 10, 20, 30, 50, 1.0, 10, 10, 1.0, 1.0)


async def test_answers_hits_and_failures_are_each_counted_once_in_both_sums(tmp_path: Path) -> None:
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        usage = Usage(store, clock)
        usage.count_answer("mercury-2", "me", answer(0.25), is_booked=False)
        usage.count_answer("mercury-2", "you", answer(0.5), is_booked=False)
        usage.count_hit("mercury-2", "me")
        usage.count("mercury-2", "me", UsageCounts(calls=1, errors=1))
        since_the_start = dict(usage.models)
        today = await usage.read_today()
        by_client = await usage.history(SPAN, ["client"])

    expected = UsageCounts(4, 1, 1, 6, 6, 12, 0.75, 0)
    assert since_the_start == today == {"mercury-2": expected}
    assert [(row.client, row.counts.calls, row.day) for row in by_client] == [("me", 3, ""), ("you", 1, "")]


async def test_money_of_which_the_books_write_the_end_is_told_here_and_written_there(tmp_path: Path) -> None:
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        usage = Usage(store, clock)
        usage.count_answer("mercury-2", "me", answer(0.25), is_booked=True)
        usage.count_uncertain("mercury-2", 0.5)
        usage.count_uncertain("mercury-2", None)
        since_the_start = dict(usage.models)
        written = await usage.read_today()

    assert since_the_start == {
        "mercury-2": UsageCounts(1, 0, 0, 3, 3, 6, 0.25, 0, uncertain_sends=2, uncertain_usd=0.5)
    }
    assert written == {"mercury-2": UsageCounts(1, 0, 0, 3, 3, 6)}


async def test_an_answer_without_a_price_is_priced_when_there_is_one_and_only_once(tmp_path: Path) -> None:
    prices: dict[str, float] = {}
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        usage = Usage(store, clock, lambda _, model: prices.get(model))
        usage.count_answer("mercury-2", "me", answer(None), is_booked=False)
        before = usage.models["mercury-2"].cost_usd, usage.models["mercury-2"].unpriced
        prices["mercury-2"] = 0.125
        after = usage.models["mercury-2"].cost_usd, usage.models["mercury-2"].unpriced
        written = await usage.history(SPAN, ["model"])

    assert (before, after) == ((0.0, 1), (0.125, 0))
    assert [(row.counts.cost_usd, row.counts.unpriced) for row in written] == [(0.125, 0)]


async def test_an_answer_without_usage_waits_for_no_price(tmp_path: Path) -> None:
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        usage = Usage(store, clock, lambda _metadata, _model: 99.0)
        unknown = Metadata(model="mercury-2", finish_reason="stop")
        usage.count_answer("mercury-2", "me", unknown, is_booked=False)

        assert (usage.models["mercury-2"].cost_usd, usage.models["mercury-2"].unpriced) == (0.0, 1)


async def test_names_of_clients_are_told_apart_anew_each_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_module, "MAX_CLIENTS", 2)
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        usage = Usage(store, clock)
        first_day = [usage.counted_client(name) for name in ("ada", "bob", "eve", "ada")]
        clock.advance(DAY)
        next_day = [usage.counted_client(name) for name in ("eve", "bob", "ada", "eve")]

    assert first_day == ["ada", "bob", OTHER_CLIENTS, "ada"]
    assert next_day == ["eve", "bob", OTHER_CLIENTS, "eve"]


async def test_what_could_not_be_written_is_written_with_the_next_counts(tmp_path: Path) -> None:
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        usage = Usage(store, clock)
        usage.count("mercury-2", "me", UsageCounts(calls=1))
        taken = usage.take_counts()
        usage.count("mercury-2", "me", UsageCounts(calls=2))
        usage.restore_counts(taken)

        assert [row.counts.calls for row in await usage.history(SPAN, ["model"])] == [3]
        assert usage.take_counts() == {}


async def test_a_call_counts_on_the_day_on_which_it_ended(tmp_path: Path) -> None:
    clock = Clock(NOON)
    async with open_store(tmp_path, clock) as store:
        usage = Usage(store, clock)
        usage.count("mercury-2", "me", UsageCounts(calls=1))
        clock.advance(DAY)
        usage.count("mercury-2", "me", UsageCounts(calls=2))
        days = [(row.day, row.counts.calls) for row in await usage.history(SPAN, ["day"])]
        today = await usage.read_today()

    assert days == [("2026-09-21", 1), ("2026-09-22", 2)]
    assert today["mercury-2"].calls == 2


async def test_where_the_file_cannot_be_read_the_counts_of_this_process_are_told(tmp_path: Path) -> None:
    clock = Clock(NOON)
    (tmp_path / "state").write_text("in the way")
    async with open_store(tmp_path / "state", clock) as store:
        usage = Usage(store, clock)
        usage.count("mercury-2", "me", UsageCounts(calls=1))

        assert (await usage.read_today())["mercury-2"].calls == 1


def test_a_clock_that_goes_back_begins_no_day_again_unless_it_was_wrong_before() -> None:
    clock = Clock(NOON)
    steady = SteadyClock(clock)
    latest = steady.now()

    clock.advance(-DAY)
    assert steady.now() == latest
    clock.advance(-2 * DAY)
    assert steady.now() == latest - 3 * DAY
