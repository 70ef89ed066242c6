"""Reservations: how a send ends decides what becomes of its money, and every send has one of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.api.evidence import NOTHING_PROVEN, NOTHING_WRITTEN, Evidence
from bridgehead.mercury.api.wire import EMBEDDINGS
from bridgehead.mercury.calling.call import Call
from bridgehead.mercury.calling.provider import Provider
from bridgehead.mercury.calling.reservations import Reservations
from bridgehead.mercury.calling.routes import ModelTerms, ProviderEntry
from bridgehead.mercury.calling.service import Service
from bridgehead.mercury.calling.usage import utc_day
from bridgehead.mercury.errors import MercuryError
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from bridgehead.runtime import events
from bridgehead.runtime.events import Listener
from tests.mercury.calling.books import NOON
from tests.mercury.calling.test_budget import ASK, CHAT, COMPLETION_PRICE, PROMPT_PRICE, WORST, report
from tests.mercury.process import BridgeProcess, bridge_process
from tests.support import mercury_journal
from tests.support.billing_upstream import BillingUpstream
from tests.support.clock import Clock
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

STREAM = "mercury_chat_stream"
ONCE = {"MERCURY_BUDGET_USD": "1", "MERCURY_MAX_RETRIES": "0"}
LEAST_WORST = 20 * COMPLETION_PRICE
"""What the longest answer costs: a worst case is this and the prompt."""


async def amounts(client: BridgeProcess) -> tuple[float, float, float]:
    """Return what is settled, uncertain and reserved today."""
    budget = (await report(client))["budget"]
    return budget["settled_usd"], budget["uncertain_usd"], budget["reserved_usd"]


async def fail(api: Simulator, folder: Path, tool: str, fault: Fault, **settings: str) -> Any:
    """Make one call that fails, and return its error code and the amounts."""
    async with bridge_process(api.url, folder, **{**ONCE, **settings}) as client:
        await client.call("mercury_list_models")
        api.faults.next(fault)
        error = await client.error(tool, {**ASK, "timeout_ms": 2000} if fault.delay else ASK)
        return error["code"], await amounts(client)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422, 429])
async def test_a_status_that_says_no_work_was_done_releases_the_money(
    api: Simulator, tmp_path: Path, status: int
) -> None:
    _, money = await fail(api, tmp_path, CHAT, Fault(status=status))

    assert money == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, 520])
async def test_a_status_that_may_come_after_the_work_leaves_the_money_uncertain(
    api: Simulator, tmp_path: Path, status: int
) -> None:
    _, (settled, uncertain, reserved) = await fail(api, tmp_path, CHAT, Fault(status=status))

    assert (settled, reserved) == (0.0, 0.0)
    assert LEAST_WORST < uncertain < 2 * WORST


@pytest.mark.parametrize("tool", [CHAT, STREAM])
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault(kind="drop"), "CONNECTION_LOST"),
        (Fault(kind="cut"), None),
        (Fault(kind="garbage"), None),
        (Fault(kind="short"), None),
        (Fault(kind="error"), "STREAM_ERROR"),
        (Fault(delay=10 * PATIENCE), "TIMEOUT"),
    ],
    ids=["closed", "cut", "garbage", "short", "error in a 200", "too slow"],
)
async def test_an_answer_that_is_lost_or_of_no_use_leaves_the_money_uncertain(
    api: Simulator, tmp_path: Path, tool: str, fault: Fault, code: str | None
) -> None:
    told, (settled, uncertain, reserved) = await fail(api, tmp_path, tool, fault)

    assert code in (None, told)
    assert (settled, reserved) == (0.0, 0.0)
    assert LEAST_WORST < uncertain < 2 * WORST
    assert len(api.requests.to("/chat/completions")) == 1


async def test_where_nothing_listens_nothing_was_written_and_the_money_is_released(
    api: Simulator, tmp_path: Path
) -> None:
    async with bridge_process(api.url, tmp_path, **ONCE) as client:
        await client.call("mercury_list_models")
        async with api.refusing():
            error = await client.error(CHAT, ASK)
        money = await amounts(client)

    assert error["code"] == "CONNECTION_FAILED"
    assert money == (0.0, 0.0, 0.0)


async def test_a_call_that_is_cancelled_after_it_was_written_leaves_its_money_uncertain(
    api: Simulator, tmp_path: Path
) -> None:
    async with bridge_process(api.url, tmp_path, **ONCE) as client:
        await client.call("mercury_list_models")
        api.faults.next(Fault(delay=10 * PATIENCE))
        request_id, _ = client.start(CHAT, ASK)
        await mercury_journal.until(api.requests, lambda journal: journal.to("/chat/completions")[0])
        under_way = await amounts(client)
        client.cancel(request_id)
        money = await amounts(client)

    assert under_way[1] == 0.0
    assert under_way[2] > LEAST_WORST
    assert money == (0.0, under_way[2], 0.0)


async def test_each_retry_has_a_reservation_of_its_own(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(status=504), Fault(status=429), Fault(status=500))
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD="1") as client:
        result = await client.call(CHAT, ASK)
        settled, uncertain, reserved = await amounts(client)
        total = (await report(client))["today"]["total"]

    assert settled == pytest.approx(result["structuredContent"]["metadata"]["cost_usd"], abs=1e-9)
    assert 2 * LEAST_WORST < uncertain < 4 * WORST
    assert reserved == 0.0
    assert (total["uncertain_sends"], total["uncertain_usd"]) == (2, pytest.approx(uncertain, abs=1e-9))


async def test_a_retry_that_no_longer_fits_into_the_budget_is_not_sent(
    api: Simulator, tmp_path: Path
) -> None:
    api.faults.next(Fault(status=504), Fault(status=504))
    async with bridge_process(api.url, tmp_path, MERCURY_BUDGET_USD=f"{1.5 * WORST:.9f}") as client:
        error = await client.error(CHAT, ASK)

    assert error["code"] == "SERVICE_UNAVAILABLE"
    assert "is uncertain" in error["message"]
    assert len(api.requests.to("/chat/completions")) == 1


async def test_without_a_budget_too_uncertain_money_is_reported_by_day_model_and_client(
    api: Simulator, tmp_path: Path
) -> None:
    async with bridge_process(api.url, tmp_path, MERCURY_MAX_RETRIES="0") as client:
        await client.call("mercury_list_models")
        for _ in range(2):
            api.faults.next(Fault(kind="drop"))
            await client.error(CHAT, ASK)
        asked = {"days": 1, "by": ["day", "model", "client"]}
        told = (await client.call("mercury_usage", asked))["structuredContent"]

    (row,) = told["history"]
    assert (row["model"], row["uncertain_sends"], row["errors"]) == ("mercury-2", 2, 2)
    assert 2 * LEAST_WORST < row["uncertain_usd"] < 4 * WORST
    assert told["since_start"]["total"]["uncertain_usd"] == pytest.approx(row["uncertain_usd"])


async def test_after_a_price_increase_the_next_send_is_reserved_at_the_new_price(tmp_path: Path) -> None:
    budget = {**ONCE, "MERCURY_BUDGET_USD": f"{6 * WORST:.9f}"}
    async with (
        BillingUpstream(only=["cost"]) as upstream,
        bridge_process(upstream.url, tmp_path, LOG_LEVEL="warn", **budget) as client,
    ):
        await client.call("mercury_list_models")
        upstream.price_factor = 8
        await client.call(CHAT, ASK)
        money = await amounts(client)
        error = await client.error(CHAT, ASK)

    (bill,) = upstream.bills
    assert bill.charge_usd > WORST
    assert money == pytest.approx((bill.charge_usd, 0.0, 0.0), abs=1e-9)
    assert error["code"] == "BUDGET_EXCEEDED"
    assert client.has_logged("the API charged more than its prices and max_tokens allow")


async def test_the_audit_says_how_many_sends_were_written_and_what_is_uncertain_of_them(
    api: Simulator, tmp_path: Path
) -> None:
    async with bridge_process(api.url, tmp_path, LOG_LEVEL="info", **ONCE) as client:
        await client.call("mercury_list_models")
        api.faults.next(Fault(kind="drop"))
        await client.error(CHAT, ASK)
        async with api.refusing():
            await client.error(CHAT, ASK)
    lost, refused = [
        line for line in client.errors.read_text().splitlines() if "mercury.audit" in line and CHAT in line
    ]

    assert '"tries":1' in lost
    assert '"uncertain_usd":' in lost
    assert '"tries":0' in refused
    assert "uncertain_usd" not in refused


# --- one send at a time, without the process around it -----------------------------------------------------

FAR = float("inf")
HOUR_MS = "3600000"
BODY = b"x" * 30
"""Thirty bytes are reserved as thirty tokens."""


def answered(usage: dict[str, Any]) -> Evidence:
    """Make the evidence of a whole answer that reports this usage."""
    return Evidence(is_written=True, status=200, is_whole=True, usage=(usage,))


class Sender:
    """Reserves sends of calls as the completer does, on a clock that stands still."""

    def __init__(self, service: Service, clock: Clock) -> None:
        self.service = service
        self.clock = clock
        self.reservations = Reservations(clock, service.rate_limits, service.budget, service.usage)

    def call(self, max_tokens: int | None = 20) -> Call:
        """Make a call of the client `ada`."""
        return Call(
            "/chat/completions",
            "mercury-2",
            BODY,
            tool=CHAT,
            client="editor",
            account="ada",
            principal="ada",
            seconds=60.0,
            request_seconds=60.0,
            cache="bypass",
            max_tokens=max_tokens,
        )

    async def send(
        self, call: Call, evidence: Evidence = NOTHING_PROVEN, *, provider: Provider | None = None
    ) -> str:
        """Send once, with what is known of it afterwards; return how it ended."""
        provider = provider or self.service.mercury
        held = await self.reservations.reserve(call, provider, FAR)
        return self.reservations.finish(held, evidence, call, provider).state

    async def left(self) -> dict[str, dict[str, int]]:
        """Return what is left of the limits of `ada` and of the server."""
        return await self.service.rate_limits.left("ada")


@asynccontextmanager
async def sender(api: Simulator, folder: Path, **settings: str) -> AsyncIterator[Sender]:
    """Open a bridge's parts with these limits and no others."""
    clock = Clock(NOON)
    none = {"RATE_LIMIT_MAX": "0", "RATE_LIMIT_SERVER_MAX": "0", "RATE_LIMIT_WINDOW": HOUR_MS}
    place = {
        "MERCURY_API_URL": api.url,
        "MERCURY_API_KEY": "sk_only_for_this_test",
        "MERCURY_MODEL": "mercury-2",
        "BRIDGEHEAD_STATE_DIR": str(folder),
    }
    service = Service(MercurySettings({**none, **place, **settings}), clock)
    try:
        yield Sender(service, clock)
    finally:
        await service.close()


async def test_without_a_budget_a_send_renews_the_price_list_in_the_background(
    api: Simulator, tmp_path: Path
) -> None:
    async with sender(api, tmp_path) as one:
        await one.send(one.call())
        await mercury_journal.until(api.requests, lambda journal: journal.to("/models"))


async def test_a_reservation_stays_open_for_half_a_minute_after_its_calls_deadline(
    api: Simulator, tmp_path: Path
) -> None:
    async with sender(api, tmp_path) as one:
        now = one.clock.monotonic()
        held = [
            await one.reservations.reserve(one.call(), one.service.mercury, now + seconds)
            for seconds in (60.0, -60.0)
        ]
        in_time, too_late = (one_held.reservation.seconds for one_held in held)

    assert (in_time, too_late) == (90.0, 30.0)


async def test_a_retry_that_was_not_written_is_released_though_the_first_send_was_written(
    api: Simulator, tmp_path: Path
) -> None:
    async with sender(api, tmp_path) as one:
        call = one.call()
        states = [await one.send(call, evidence) for evidence in (NOTHING_PROVEN, NOTHING_WRITTEN)]

    assert states == ["uncertain", "released"]
    assert call.tries == 1


@pytest.mark.parametrize(
    ("status", "state"),
    [(302, "uncertain"), (399, "uncertain"), (400, "released"), (408, "uncertain"), (500, "uncertain")],
)
async def test_only_a_refusal_of_the_client_proves_that_no_work_was_done(
    api: Simulator, tmp_path: Path, status: int, state: str
) -> None:
    async with sender(api, tmp_path) as one:
        assert await one.send(one.call(), Evidence(is_written=True, status=status)) == state


async def test_a_limit_of_the_provider_alone_holds_its_sends(api: Simulator, tmp_path: Path) -> None:
    entry = ProviderEntry(url=api.url, requests_per_minute=1)
    async with sender(api, tmp_path) as one:
        provider = Provider(one.service.settings, one.clock, "local", entry)
        await one.send(one.call(), provider=provider)
        with pytest.raises(MercuryError) as refused:
            await one.send(one.call(), provider=provider)
        await provider.close()

    assert refused.value.code == "LOCAL_RATE_LIMIT"


async def test_a_retry_counts_for_the_server_and_not_for_the_client_again(
    api: Simulator, tmp_path: Path
) -> None:
    async with sender(api, tmp_path, RATE_LIMIT_MAX="9", RATE_LIMIT_SERVER_MAX="9") as one:
        call = one.call()
        for _ in range(3):
            await one.send(call)

        assert await one.left() == {"client": {"requests": 8}, "server": {"requests": 6}}


TOKENS = {"RATE_LIMIT_INPUT_TOKENS": "100", "RATE_LIMIT_OUTPUT_TOKENS": "100"}


async def test_a_send_holds_its_longest_answer_and_prompt_until_its_end_is_known(
    api: Simulator, tmp_path: Path
) -> None:
    async with sender(api, tmp_path, **TOKENS) as one:
        call, provider = one.call(), one.service.mercury
        held = await one.reservations.reserve(call, provider, FAR)
        under_way = await one.left()
        one.reservations.finish(held, answered({"prompt_tokens": 4, "completion_tokens": 5}), call, provider)
        settled = await one.left()

    assert under_way["client"] == {"input_tokens": 70, "output_tokens": 80}
    assert settled["client"] == {"input_tokens": 96, "output_tokens": 95}


async def test_a_send_of_embeddings_holds_no_tokens_of_an_answer(api: Simulator, tmp_path: Path) -> None:
    async with sender(api, tmp_path, **TOKENS) as one:
        call = one.call()
        call.path = EMBEDDINGS
        await one.reservations.reserve(call, one.service.mercury, FAR)
        under_way = await one.left()

    assert under_way["client"] == {"input_tokens": 70, "output_tokens": 100}


@pytest.mark.parametrize(
    ("end", "left"),
    [
        (NOTHING_WRITTEN, {"input_tokens": 100, "output_tokens": 100}),
        (NOTHING_PROVEN, {"input_tokens": 70, "output_tokens": 80}),
        (answered({"cost": 0.001}), {"input_tokens": 70, "output_tokens": 80}),
    ],
    ids=["released", "uncertain", "settled without its tokens"],
)
async def test_tokens_are_given_back_only_if_it_is_known_how_many_were_used(
    api: Simulator, tmp_path: Path, end: Evidence, left: dict[str, int]
) -> None:
    async with sender(api, tmp_path, **TOKENS) as one:
        await one.send(one.call(), end)

        assert (await one.left())["client"] == left


async def test_a_send_that_costs_exactly_its_worst_case_leaves_the_price_list_in_use(
    api: Simulator, tmp_path: Path
) -> None:
    worst = len(BODY) * PROMPT_PRICE + 20 * COMPLETION_PRICE
    async with sender(api, tmp_path, MERCURY_BUDGET_USD="1") as one:
        await one.send(one.call(), answered({"cost": worst}))
        is_in_use = one.service.catalogue.is_loaded
        await one.send(one.call(), answered({"cost": worst + 1e-9}))

        assert is_in_use
        assert not one.service.catalogue.is_loaded


@pytest.mark.parametrize(
    ("model", "max_tokens", "usd"),
    [("priced", 20, 30 * 1e-6 + 20 * 1e-5), ("priced", None, 30 * 1e-6), ("unpriced", 20, 0.0)],
    ids=["prompt and answer", "an answer of any length", "no price"],
)
async def test_without_a_budget_uncertain_money_is_what_is_known_of_its_worst_case(
    api: Simulator, tmp_path: Path, model: str, max_tokens: int | None, usd: float
) -> None:
    terms = {"priced": ModelTerms(prompt_usd=1.0, completion_usd=10.0)}
    async with sender(api, tmp_path) as one:
        provider = Provider(
            one.service.settings, one.clock, "local", ProviderEntry(url=api.url, models=terms)
        )
        call = one.call(max_tokens)
        call.model = model
        await one.send(call, provider=provider)
        await provider.close()

    assert call.uncertain_usd == pytest.approx(usd, abs=1e-12)


async def test_an_event_says_which_send_is_uncertain_and_what_it_can_cost(
    api: Simulator, tmp_path: Path
) -> None:
    listener = Listener()
    events.feed.join(listener)
    try:
        async with sender(api, tmp_path, MERCURY_BUDGET_USD="1") as one:
            await one.send(one.call())
        told = [event for event in await listener.take(99) if event.type == "budget.uncertain"]
    finally:
        events.feed.leave(listener)

    usd = pytest.approx(len(BODY) * PROMPT_PRICE + 20 * COMPLETION_PRICE)
    assert [event.data for event in told] == [
        {"bridge": "mercury", "day": utc_day(NOON), "model": "mercury-2", "client": "editor"}
        | {"usd": usd, "why": "no answer came"}
    ]


@pytest.mark.parametrize(
    ("model", "max_tokens", "code", "reason"),
    [
        ("priced", None, "PRICE_UNKNOWN", "the longest possible answer of 'priced' is not known"),
        ("unlisted", 20, "MODEL_NOT_FOUND", "unlisted"),
    ],
    ids=["an answer of any length", "an unknown model"],
)
async def test_with_a_budget_a_send_without_a_known_worst_case_is_refused_and_books_nothing(
    api: Simulator, tmp_path: Path, model: str, max_tokens: int | None, code: str, reason: str
) -> None:
    terms = {"priced": ModelTerms(prompt_usd=1.0, completion_usd=10.0)}
    async with sender(api, tmp_path, MERCURY_BUDGET_USD="1") as one:
        provider = Provider(
            one.service.settings, one.clock, "local", ProviderEntry(url=api.url, models=terms)
        )
        call = one.call(max_tokens)
        call.model = model
        with pytest.raises(MercuryError, match=reason) as refused:
            await one.send(call, provider=provider)
        _, [spending] = await one.service.budget.spending("ada")
        await provider.close()

    assert refused.value.code == code
    assert spending.committed == 0.0
