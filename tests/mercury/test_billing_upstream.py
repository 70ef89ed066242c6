"""The billing upstream: it charges on receipt, fails as told, and writes the truth into its journal."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.mercury.process import MODEL
from tests.support.billing_upstream import (
    FAULTS,
    GAPS,
    HOST,
    MODELS_BY_ID,
    BillingUpstream,
    Fault,
    Prices,
    read_journal,
)
from tests.support.tcp import is_listening
from tests.support.waiting import PATIENCE, until

BOTH = [(fault, is_streamed) for fault in FAULTS for is_streamed in (False, True)]
POSSIBLE = [(fault, is_streamed) for fault, is_streamed in BOTH if is_streamed or not fault.leaves_out]
STREAMED = pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])


def write_request(call: str = "call 1", *, is_streamed: bool = False) -> bytes:
    """Make a request for at most 50 tokens."""
    asked = {
        "model": MODEL,
        "messages": [{"role": "user", "content": f"{call}: what is left?"}],
        "max_tokens": 50,
        "stream": is_streamed,
    }
    body = msgspec.json.encode(asked)
    return b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


@asynccontextmanager
async def connected(
    api: BillingUpstream,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(HOST, api.port)
    try:
        async with asyncio.timeout(PATIENCE):
            yield reader, writer
    finally:
        writer.close()


async def exchange(api: BillingUpstream, request: bytes) -> bytes:
    """Send one request and read what comes, on a connection that says where the answer ends by closing."""
    async with connected(api) as (reader, writer):
        writer.write(request)
        writer.write_eof()
        try:
            return await reader.read()
        except ConnectionResetError:
            return b"(reset)"


def read_usage(said: bytes) -> list[dict[str, Any]]:
    """Read the usage in an answer, be it whole or a stream."""
    texts = [line.removeprefix(b"data: ") for line in said.splitlines()]
    found = [msgspec.json.decode(text) for text in texts if text.startswith(b"{")]
    return [one["usage"] for one in found if "usage" in one]


@pytest.mark.parametrize(
    ("fault", "is_streamed"), POSSIBLE, ids=[f"{f.name}{', streamed' * s}" for f, s in POSSIBLE]
)
async def test_a_request_is_billed_and_then_answered_as_its_fault_says(
    fault: Fault, *, is_streamed: bool
) -> None:
    async with BillingUpstream(only=[fault.name]) as api:
        said = await exchange(api, write_request(is_streamed=is_streamed))

    (bill,) = api.bills
    assert (bill.call, bill.fault) == ("call 1", fault.name)
    assert (bill.charge_usd > 0) == fault.is_billed
    assert bill.charge_usd <= bill.most_usd
    is_ended = said.endswith(b"0\r\n\r\n" if is_streamed and fault.status == 200 else b"}")
    if fault.end == "reset":
        assert said == b"(reset)" or not is_ended
    elif fault.content == "no http":
        assert not said.startswith(b"HTTP")
    elif fault.sent == "nothing":
        assert said == b""
    elif fault.sent == "half of the head":
        assert said
        assert b"\r\n\r\n" not in said
    else:
        assert said.startswith(b"HTTP/1.1 %d " % fault.status)
        assert is_ended == (fault.sent == "all" and fault.content != "garbage")


@STREAMED
async def test_a_good_answer_reports_the_tokens_that_were_charged(*, is_streamed: bool) -> None:
    async with BillingUpstream(only=["good"]) as api:
        answers = [
            await exchange(api, write_request(f"call {n}", is_streamed=is_streamed)) for n in range(20)
        ]

    prices = Prices.of(MODELS_BY_ID[MODEL])
    for bill, said in zip(api.bills, answers, strict=True):
        (usage,) = read_usage(said)
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        prompt = (usage["prompt_tokens"] - cached) * prices.prompt + cached * prices.cached
        assert prompt + usage["completion_tokens"] * prices.completion == round(bill.charge_usd * 1e9)
        assert usage["completion_tokens"] <= 50


@STREAMED
async def test_a_cost_that_is_reported_is_what_was_charged(*, is_streamed: bool) -> None:
    async with BillingUpstream(only=["cost"]) as api:
        (usage,) = read_usage(await exchange(api, write_request(is_streamed=is_streamed)))

    assert usage["cost"] == api.bills[0].charge_usd


@STREAMED
async def test_an_answer_may_lack_its_usage(*, is_streamed: bool) -> None:
    async with BillingUpstream(only=["no usage"]) as api:
        assert read_usage(await exchange(api, write_request(is_streamed=is_streamed))) == []

    assert api.bills[0].charge_usd > 0


async def test_a_bill_is_in_the_file_before_anything_is_answered(tmp_path: Path) -> None:
    journal = tmp_path / "bills.jsonl"
    async with BillingUpstream(only=["hang"], journal=journal) as api, connected(api) as (_, writer):
        writer.write(write_request())
        await until(lambda: read_journal(journal))

        assert read_journal(journal) == api.bills


async def test_a_request_that_does_not_arrive_whole_is_not_billed() -> None:
    async with BillingUpstream() as api:
        assert await exchange(api, write_request()[:-1]) == b""

    assert api.bills == []


async def test_a_call_meets_the_same_faults_whenever_it_comes() -> None:
    requests = {f"call {n}": write_request(f"call {n}", is_streamed=n % 2 == 0) for n in range(40)}

    async def send_all(names: list[str], *, seed: int) -> dict[str, list[tuple[str, float]]]:
        async with BillingUpstream(seed, without=GAPS) as api:
            for _ in range(2):
                await asyncio.gather(*(exchange(api, requests[name]) for name in names))
        return {
            name: [(bill.fault, bill.charge_usd) for bill in api.bills if bill.call == name] for name in names
        }

    first = await send_all(list(requests), seed=1)

    assert await send_all(list(reversed(requests)), seed=1) == first
    assert await send_all(list(requests), seed=2) != first
    assert any(one != other for one, other in first.values()), "a retry has a fault of its own"


async def test_for_a_moment_nobody_listens() -> None:
    async with BillingUpstream(only=["deaf"]) as api:
        assert (await exchange(api, write_request())).startswith(b"HTTP/1.1 200 ")
        await until(lambda: not is_listening(api.port))
        await until(lambda: is_listening(api.port))


async def test_models_are_listed_with_what_they_cost() -> None:
    async with BillingUpstream() as api:
        said = await exchange(api, b"GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n")

    listed = {model["id"]: model for model in msgspec.json.decode(said.partition(b"\r\n\r\n")[2])["data"]}
    assert float(listed[MODEL]["pricing"]["completion"]) > 0
    assert listed[MODEL]["max_output_length"] > 0
    assert api.bills == []
