"""Evidence: a send returns how it ended as a value, however that is."""

import asyncio
from typing import Any

import pytest

from bridgehead.mercury.api.client import ApiClient, TimeLimit
from bridgehead.mercury.api.evidence import Evidence, Sent
from bridgehead.mercury.api.wire import CHAT, ApiRequest, write
from bridgehead.mercury.errors import MercuryError
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from bridgehead.runtime.timing import SystemClock
from tests.mercury.one_answer import USAGE, one_answer
from tests.support import mercury_journal
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

BODY = write({"model": "mercury-2", "messages": [{"role": "user", "content": "In 8 words"}]})


async def send(url: str, *, is_streamed: bool = False) -> Sent:
    """Send one request with a client of its own."""
    client = ApiClient(MercurySettings({"MERCURY_API_URL": url}), SystemClock())

    async def report(_: Any) -> None:
        return

    try:
        request = ApiRequest(CHAT, "mercury-2", BODY, is_streamed)
        return await client.send(request, "sk_test", TimeLimit(PATIENCE, "REQUEST_TIMEOUT"), report)
    finally:
        await client.close()


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_whole_answer_comes_with_its_usage_as_it_was_reported(
    api: Simulator, *, is_streamed: bool
) -> None:
    sent = await send(api.url, is_streamed=is_streamed)

    assert sent.completion is not None
    assert (sent.evidence.status, sent.evidence.is_whole) == (200, True)
    (usage,) = sent.evidence.usage
    assert usage["prompt_tokens"] > 0


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(
    ("fault", "evidence"),
    [
        (Fault(status=504), Evidence(is_written=True, status=504)),
        (Fault(status=400), Evidence(is_written=True, status=400)),
        (Fault(kind="drop"), Evidence(is_written=True)),
    ],
    ids=["504", "400", "closed"],
)
async def test_a_failure_is_a_value_too(
    api: Simulator, fault: Fault, evidence: Evidence, *, is_streamed: bool
) -> None:
    api.faults.next(fault)

    sent = await send(api.url, is_streamed=is_streamed)

    assert isinstance(sent.error, MercuryError)
    assert sent.evidence == evidence


async def test_a_stream_that_is_cut_is_not_whole(api: Simulator) -> None:
    api.faults.next(Fault(kind="cut"))

    assert (await send(api.url, is_streamed=True)).evidence == Evidence(is_written=True, status=200)


async def test_where_nothing_listens_nothing_was_written(api: Simulator) -> None:
    async with api.refusing():
        assert not (await send(api.url)).evidence.is_written


async def test_a_call_that_is_cancelled_still_tells_what_was_written(api: Simulator) -> None:
    api.faults.next(Fault(delay=10 * PATIENCE))
    sending = asyncio.create_task(send(api.url))
    await mercury_journal.until(api.requests, lambda journal: journal.to("/chat/completions")[0])
    sending.cancel()
    sent = await sending

    assert isinstance(sent.error, asyncio.CancelledError)
    assert sent.evidence == Evidence(is_written=True)


async def test_a_refusal_that_reports_usage_carries_it() -> None:
    async with one_answer(400, {"error": {"message": "filtered"}, "usage": USAGE}) as url:
        sent = await send(url)

    assert sent.evidence == Evidence(is_written=True, status=400, usage=(USAGE,))
