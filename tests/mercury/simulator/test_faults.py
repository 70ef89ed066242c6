"""Faults: each kind looks on the wire as it should, and comes when it is ordered."""

import time
from email.utils import parsedate_to_datetime

from bridgehead.mercury.simulator import NAMED, Fault, Faults, Simulator
from tests.mercury.simulator.raw import Raw, chat
from tests.support.waiting import PATIENCE


async def test_faults_come_in_the_order_they_were_given_and_then_no_more(api: Simulator, raw: Raw) -> None:
    api.faults.next(Fault(status=503), Fault(status=429))

    assert [(await raw.post(chat())).status for _ in range(3)] == [503, 429, 200]


async def test_a_fault_waits_for_a_request_that_it_is_for(api: Simulator, raw: Raw) -> None:
    api.faults.next(Fault(status=503), Fault(status=500, on="models"))

    assert (await raw.get("/v1/models")).status == 500
    assert (await raw.get("/v1/models")).status == 200
    assert (await raw.post(chat())).status == 503


async def test_a_fault_can_wait_for_a_request_that_says_something(api: Simulator, raw: Raw) -> None:
    api.faults.next(Fault(status=503, says="<7>"), Fault(status=500, says="<8>"))

    assert (await raw.post(chat("<8>"))).status == 500
    assert (await raw.post(chat("<8>"))).status == 200
    assert (await raw.post(chat("<7>"))).status == 503


async def test_a_fault_for_all_requests_stays_until_it_is_taken_back(api: Simulator, raw: Raw) -> None:
    api.faults.always(Fault(status=503))
    down = [(await raw.post(chat())).status for _ in range(3)]
    api.faults.always(None)

    assert down == [503, 503, 503]
    assert (await raw.post(chat())).status == 200


def test_mixed_faults_come_at_their_rate_and_repeat_with_their_seed() -> None:
    def taken(seed: int) -> list[Fault | None]:
        faults = Faults(0.5, seed)
        return [faults.take("/v1/chat/completions") for _ in range(2000)]

    first, again, other = taken(1), taken(1), taken(2)

    assert first == again != other
    assert 900 < sum(fault is not None for fault in first) < 1100
    assert {fault for fault in first if fault is not None} == set(NAMED.values())


async def test_when_to_try_again_is_said_in_each_form(api: Simulator, raw: Raw) -> None:
    api.faults.next(
        Fault(status=429, retry_after="7"),
        Fault(status=503, retry_after_ms="1500"),
        Fault(status=429, retry_after_date=90),
    )

    seconds, milliseconds, date = [(await raw.post(chat())).headers for _ in range(3)]

    assert (seconds["retry-after"], milliseconds["retry-after-ms"]) == ("7", "1500")
    assert 90 - PATIENCE < parsedate_to_datetime(date["retry-after"]).timestamp() - time.time() < 91


# --- orders from another process ---------------------------------------------------------------------------
