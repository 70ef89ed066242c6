"""Journal: every request is there, with what became of it and when."""

import asyncio
import time

import pytest

from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.simulator.raw import Raw, chat
from tests.support import mercury_journal


async def test_a_request_is_noted_with_its_body_its_key_and_its_times(api: Simulator, raw: Raw) -> None:
    before = time.monotonic()
    await (await raw.post(chat("Well?"))).body()
    (request,) = api.requests

    assert (request.number, request.method, request.path) == (1, "POST", "/v1/chat/completions")
    assert request.body == chat("Well?")
    assert (request.key, request.headers["content-type"]) == ("sk_test", "application/json")
    assert request.status == 200
    assert request.answered is not None
    assert request.finished is not None
    assert before < request.arrived <= request.answered <= request.finished < time.monotonic()
    assert request.aborted is None


async def test_waiting_for_what_does_not_come_has_an_end(api: Simulator) -> None:
    with pytest.raises(TimeoutError):
        await mercury_journal.until(api.requests, lambda requests: requests[5].finished, within=0.05)


async def test_it_knows_how_many_requests_there_were_at_once(api: Simulator, raw: Raw) -> None:
    api.faults.always(Fault(delay=0.1))
    await asyncio.gather(*(raw.post(chat()) for _ in range(7)))
    await raw.post(chat())

    assert mercury_journal.most_at_once(api.requests, "/chat/completions") == 7
    assert mercury_journal.most_at_once(api.requests, "/models") == 0


async def test_it_keeps_the_newest_only_and_counts_all() -> None:
    async with Simulator(remember=3) as api:
        raw = Raw(api.port)
        for number in range(5):
            await raw.post(chat(str(number)))
        await raw.http.close()

    assert [request.body["messages"][0]["content"] for request in api.requests] == ["2", "3", "4"]
    assert api.requests.total == 5


async def test_it_can_be_read_and_emptied_from_another_process(api: Simulator, raw: Raw) -> None:
    await raw.post(chat("Well?"))
    await raw.get("/v1/models")
    shown = (await (await raw.get("/_requests", key="")).json())["requests"]
    await raw.http.request("DELETE", "/_requests")

    assert [one["path"] for one in shown] == ["/v1/chat/completions", "/v1/models"]
    assert [one["body"] for one in shown] == [chat("Well?"), None]
    assert shown[0]["status"] == 200
    assert shown[0]["headers"]["authorization"] == "Bearer ***"
    assert len(api.requests) == 0
