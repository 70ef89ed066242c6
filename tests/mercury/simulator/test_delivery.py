"""Delivery: each fault looks on the wire as it should, and each answer comes at its pace."""

import asyncio
import time
from typing import Any

import pytest

from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.simulator.raw import Raw, chat, content, events
from tests.support import mercury_journal

STREAM = chat(stream=True)


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
    await mercury_journal.until(api.requests, lambda requests: requests[0].chunks > 150)
    await response.hang_up()
    await mercury_journal.until(api.requests, lambda requests: requests[0].aborted)

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
    await mercury_journal.until(api.requests, lambda requests: requests[0].aborted)
