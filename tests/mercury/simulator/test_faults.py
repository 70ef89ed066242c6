"""Faults: each kind looks on the wire as it should, and comes when it is ordered."""

import asyncio
import time
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from bridgehead.mercury.simulator import NAMED, Fault, Faults, Simulator
from tests.mercury.simulator.raw import Raw, chat, content, events
from tests.support.waiting import PATIENCE

STREAM = chat(stream=True)


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


@pytest.mark.parametrize("fault", [Fault(delay=0.2), Fault(delay=0.2, status=503)])
async def test_a_slow_answer_comes_after_its_delay(api: Simulator, raw: Raw, fault: Fault) -> None:
    api.faults.next(fault)
    began = time.monotonic()
    response = await raw.post(chat())

    assert time.monotonic() - began > 0.19
    assert response.status == fault.status


async def test_a_slow_stream_waits_between_its_pieces(api: Simulator, raw: Raw) -> None:
    api.faults.next(Fault(chunk_delay=0.02))
    began = time.monotonic()
    chunks = events(await (await raw.post(chat("in 8 words", stream=True))).body())

    assert len(chunks) == 11
    assert time.monotonic() - began > 10 * 0.02


async def test_the_pace_of_all_streams_can_be_set() -> None:
    async with Simulator(chunk_delay=0.005) as api:
        raw = Raw(api.port)
        began = time.monotonic()
        chunks = events(await (await raw.post(chat("in 40 words", stream=True))).body())
        took = time.monotonic() - began
        await raw.http.close()

    assert len(chunks) == 43
    assert took > 0.2


@pytest.mark.parametrize("after", [0, 3])
async def test_a_cut_stream_breaks_off_without_its_end(api: Simulator, raw: Raw, after: int) -> None:
    api.faults.next(Fault(kind="cut", after=after))
    response = await raw.post(STREAM)
    pieces = [await response.event() for _ in range(after + 1)]

    with pytest.raises(asyncio.IncompleteReadError):
        await response.event()
    assert len(pieces) == after + 1


async def test_a_cut_body_is_shorter_than_it_was_announced(api: Simulator, raw: Raw) -> None:
    api.faults.next(Fault(kind="cut"))
    response = await raw.post(chat())

    with pytest.raises(asyncio.IncompleteReadError) as caught:
        await response.body()
    assert 0 < len(caught.value.partial) < int(response.headers["content-length"])


@pytest.mark.parametrize("body", [chat(), STREAM])
async def test_a_dropped_request_gets_no_byte(api: Simulator, raw: Raw, body: Any) -> None:
    api.faults.next(Fault(kind="drop"))

    with pytest.raises(asyncio.IncompleteReadError) as caught:
        await raw.post(body)
    assert caught.value.partial == b""


async def test_a_short_stream_ends_in_good_order_but_not_at_its_end(api: Simulator, raw: Raw) -> None:
    right = events(await (await raw.post(STREAM)).body())
    api.faults.next(Fault(kind="short"))
    wrong = events(await (await raw.post(STREAM)).body())

    assert content(wrong) == content(right)[:3]
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in wrong)


async def test_a_short_body_is_half_of_it(api: Simulator, raw: Raw) -> None:
    right = await (await raw.post(chat())).body()
    api.faults.next(Fault(kind="short"))
    wrong = await (await raw.post(chat())).body()

    assert right[100:].startswith(wrong[100:])
    assert len(wrong) == len(right) // 2


async def test_an_undone_stream_lacks_only_its_last_word(api: Simulator, raw: Raw) -> None:
    right = events(await (await raw.post(STREAM)).body())
    api.faults.next(Fault(kind="undone"))
    wrong = events(await (await raw.post(STREAM)).body())

    assert right[-1] == "[DONE]"
    assert (content(wrong), len(wrong)) == (content(right), len(right) - 1)
    assert wrong[-1]["choices"][0]["finish_reason"] == "stop"


async def test_garbage_is_no_json(api: Simulator, raw: Raw) -> None:
    api.faults.next(Fault(kind="garbage"), Fault(kind="garbage"))
    plain = await (await raw.post(chat())).body()
    stream = await (await raw.post(STREAM)).body()

    assert plain.startswith(b"<html>")
    with pytest.raises(UnicodeDecodeError):
        stream.decode()
    assert events(stream[: stream.index(b'data: {"id": "')])


async def test_an_error_can_come_with_a_good_status(api: Simulator, raw: Raw) -> None:
    api.faults.next(Fault(kind="error"), Fault(kind="error"))
    plain = await (await raw.post(chat())).json()
    stream = events(await (await raw.post(STREAM)).body())

    assert plain["error"]["type"] == "server_error"
    assert len(content(stream[:-1])) == 3
    assert stream[-1]["error"]["type"] == "server_error"


@pytest.mark.parametrize("body", [chat(), STREAM])
async def test_an_endless_answer_goes_on_until_the_client_goes(api: Simulator, raw: Raw, body: Any) -> None:
    api.faults.next(Fault(kind="endless"))
    response = await raw.post(body)
    await api.requests.until(lambda requests: requests[0].chunks > 150)
    await response.hang_up()
    await api.requests.until(lambda requests: requests[0].aborted)

    assert api.requests[0].finished is None


@pytest.mark.parametrize(("body", "chunks"), [(chat(), 0), (STREAM, 4)])
async def test_a_silent_answer_begins_and_says_no_more(
    api: Simulator, raw: Raw, body: Any, chunks: int
) -> None:
    api.faults.next(Fault(kind="silent"))
    response = await raw.post(body)
    await asyncio.sleep(0.1)

    assert (response.status, api.requests[0].chunks) == (200, chunks)
    assert (api.requests[0].finished, api.requests[0].aborted) == (None, None)
    await response.hang_up()
    await api.requests.until(lambda requests: requests[0].aborted)


async def test_nothing_listens_for_a_while_after_a_refusal(api: Simulator, raw: Raw) -> None:
    api.faults.next(Fault(kind="refused", delay=0.2))

    with pytest.raises(asyncio.IncompleteReadError):
        await raw.post(chat())
    with pytest.raises(ConnectionRefusedError):
        await raw.post(chat())
    async with asyncio.timeout(PATIENCE):
        while not await listens(raw):
            await asyncio.sleep(0.02)
    assert len(api.requests) == 2


async def listens(raw: Raw) -> bool:
    """Tell whether a request gets through."""
    try:
        return (await raw.post(chat())).status == 200
    except ConnectionRefusedError:
        return False


async def test_refusing_cuts_what_is_connected(api: Simulator, raw: Raw) -> None:
    api.faults.next(Fault(kind="endless"))
    response = await raw.post(STREAM)
    async with api.refusing():
        assert await response.closed_by_server()
        assert not await listens(raw)
    assert await listens(raw)


async def test_a_simulator_that_ends_while_it_refuses_stays_closed() -> None:
    async with Simulator(faults=Faults(1.0, among=[Fault(kind="refused", delay=0.05)])) as api:
        raw = Raw(api.port)
        with pytest.raises(asyncio.IncompleteReadError):
            await raw.post(chat())
    await asyncio.sleep(0.1)

    assert not await listens(raw)
    await raw.http.close()


# --- orders from another process ---------------------------------------------------------------------------


async def test_orders_come_over_http_too(raw: Raw) -> None:
    orders = {"next": [{"status": 500}], "always": {"status": 503}}
    assert (await raw.post(orders, "/_faults", key="")).status == 200
    ordered = [(await raw.post(chat())).status for _ in range(2)]
    assert (await raw.post({"always": None}, "/_faults")).status == 200

    assert ordered == [500, 503]
    assert (await raw.post(chat())).status == 200


async def test_a_share_of_the_requests_can_be_ordered_to_fail(raw: Raw) -> None:
    await raw.post({"rate": 1.0, "seed": 4, "among": ["402"]}, "/_faults")
    failing = (await raw.post(chat())).status
    await raw.post({"clear": True}, "/_faults")

    assert failing == 402
    assert (await raw.post(chat())).status == 200


@pytest.mark.parametrize("orders", [{"nxt": []}, {"rate": 1, "among": ["499"]}, {"next": [{"kind": "odd"}]}])
async def test_orders_that_make_no_sense_are_refused(raw: Raw, orders: Any) -> None:
    response = await raw.post(orders, "/_faults")

    assert response.status == 400
    assert "These are no orders" in (await response.json())["error"]["message"]
