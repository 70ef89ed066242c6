"""A thousand calls with every fault mixed in: the right answer or the right error, in time, and nothing else.

Every call has a tag in its prompt, so the journal of the simulated API tells what was asked for it and what
went wrong with each request. What must hold is derived from that, not from what the bridge says of itself.

First every fault is made to occur with every kind of call, by its tag; then half of the requests fail.
"""

import asyncio
import itertools
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from bridgehead.mercury.simulator import NAMED, Fault, ReceivedRequest, Simulator
from tests.mercury.process import KEY, MODEL, BridgeProcess, bridge_process, error_of
from tests.support.posix import read_title
from tests.support.waiting import until

CALLS = 1000
AT_ONCE = 40
KINDS = 10
"""Of calls: a fill-in, an edit, chats and streams."""
RETRIES = 3
DEADLINE_SECONDS = 2.5
SLACK_SECONDS = 20.0
"""What a busy machine may add to a deadline."""
SHORTEST_LIMIT_SECONDS = 0.8
REPLACED_SECONDS = 0.5
CLOSED_SECONDS = 1.0
"""For how long, at most, nobody listens after a fault that closes everything."""
MOST_TOKENS = 200
BUDGET_USD = 0.15
PROMPT_USD, COMPLETION_USD = 0.25e-6, 0.75e-6
"""The prices of the models that are asked, for one token."""
REQUESTS, WINDOW_SECONDS = 600, 5.0
SETTINGS = {
    "MERCURY_MAX_RETRIES": str(RETRIES),
    "MERCURY_TOTAL_TIMEOUT": str(int(DEADLINE_SECONDS * 1000)),
    "REQUEST_TIMEOUT": "900",
    "MERCURY_IDLE_TIMEOUT": "800",
    "MERCURY_BUDGET_USD": str(BUDGET_USD),
    "RATE_LIMIT_SERVER_MAX": str(REQUESTS),
    "RATE_LIMIT_WINDOW": str(int(WINDOW_SECONDS * 1000)),
    "RATE_LIMIT_WAIT_MS": "60000",
}

LOST = {"CONNECTION_LOST", "CONNECTION_FAILED"}
BY_STATUS = {
    400: ("validation_error", {"INVALID_REQUEST", "CONTEXT_LENGTH_EXCEEDED"}),
    401: ("auth_error", {"INVALID_API_KEY"}),
    402: ("auth_error", {"BILLING_REQUIRED"}),
    404: ("api_error", {"NOT_FOUND"}),
    408: ("api_error", {"SERVICE_ERROR"}),
    429: ("rate_limit", {"RATE_LIMITED"}),
    500: ("api_error", {"SERVICE_ERROR"}),
    502: ("api_error", {"SERVICE_UNAVAILABLE"}),
    503: ("api_error", {"SERVICE_UNAVAILABLE"}),
    504: ("api_error", {"SERVICE_UNAVAILABLE"}),
}
BY_KIND = {
    "cut": LOST,
    "drop": LOST,
    "refused": LOST,
    "short": {"STREAM_INCOMPLETE", "BAD_RESPONSE"},
    "garbage": {"STREAM_INCOMPLETE", "BAD_RESPONSE"},
    "error": {"STREAM_ERROR"},
    "endless": {"TIMEOUT"},
    "silent": {"TIMEOUT"},
}
REPEATABLE = {408, 429, 500, 502, 503, 504}
REFUSED = NAMED["refused"]
OWN_LIMITS = {"BUDGET_EXCEEDED", "LOCAL_RATE_LIMIT"}
ALWAYS_SEEN = {
    *("INVALID_REQUEST", "CONTEXT_LENGTH_EXCEEDED", "INVALID_API_KEY", "BILLING_REQUIRED", "NOT_FOUND"),
    *("TIMEOUT", "STREAM_INCOMPLETE", "STREAM_ERROR", "BAD_RESPONSE", "CONNECTION_LOST"),
}
"""What calls end in that are not tried again after the fault that is made to occur."""


class Done(Struct):
    """One call that has come back."""

    tag: str
    tool: str
    body: dict[str, Any]
    """What the API is asked for it."""
    begun: float
    seconds: float
    result: dict[str, Any]

    @property
    def is_stream(self) -> bool:
        return self.tool == "mercury_chat_stream"


def arguments(number: int) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Make a call: its tool, its arguments, and what the API should be asked."""
    tag = f"<{number:04}>"
    prompt = f"Tell me of bridge {tag} in {15 + number % 10} words"
    messages = [{"role": "user", "content": prompt}]
    kind = number % KINDS
    if kind == 0:
        filling = {"model": "mercury-edit-2", "prompt": f"# {tag}\ndef f():\n", "suffix": "f()\n"}
        return "mercury_fim_completion", {**filling, "max_tokens": MOST_TOKENS}, filling
    if kind == 1:
        prompt = f"<|code_to_edit|>x = '{tag}'<|/code_to_edit|>"
        asked = {"model": "mercury-edit-2", "messages": [{"role": "user", "content": prompt}]}
        given = {"model": "mercury-edit-2", "prompt": prompt, "max_tokens": MOST_TOKENS}
        return "mercury_edit_completion", given, asked
    tool = "mercury_chat_stream" if kind > 5 else "mercury_chat_completion"
    asked = {"model": MODEL, "messages": messages}
    more = {"diffusing": True} if kind == 9 else {}
    return tool, {**asked, **more, "max_tokens": MOST_TOKENS}, asked


async def make_calls(client: BridgeProcess, chosen: range) -> list[Done]:
    """Make some of the calls, so many at once."""
    numbers = iter(chosen)
    done: list[Done] = []

    async def caller() -> None:
        for number in numbers:
            tool, given, asked = arguments(number)
            begun = time.monotonic()
            result = await client.call(tool, given, progress=number)
            done.append(Done(f"<{number:04}>", tool, asked, begun, time.monotonic() - begun, result))

    await asyncio.gather(*(caller() for _ in range(AT_ONCE)))
    return done


async def make_all_calls(client: BridgeProcess, api: Simulator) -> list[Done]:
    """Make every fault occur with every kind of call; then leave it to chance.

    Calls that find nothing listening come one after the other: each cuts the connections of all others.
    """
    ordered = [fault for fault in NAMED.values() if fault != REFUSED] + [REFUSED]
    for number in range(KINDS * len(ordered)):
        api.faults.next(msgspec.structs.replace(ordered[number // KINDS], says=f"<{number:04}>"))
    last = KINDS * len(ordered)
    done = await make_calls(client, range(last - KINDS))
    for number in range(last - KINDS, last):
        done += await make_calls(client, range(number, number + 1))
        await until(lambda: not api.is_refusing)
    api.faults.mixed(0.5, seed=11)
    return done + await make_calls(client, range(last, CALLS))


def plain(fault: Fault | None) -> Fault:
    """Give a fault without the call that it was for; where there was none, that which does nothing."""
    return Fault() if fault is None else msgspec.structs.replace(fault, says="")


def kind_of(tag: str) -> int:
    return int(tag[1:5]) % KINDS


def by_tag(api: Simulator) -> dict[str, list[ReceivedRequest]]:
    """Find the requests that were made for each call."""
    found: dict[str, list[ReceivedRequest]] = {}
    for request in api.requests:
        if request.content:
            text = request.content.decode()
            found.setdefault(text[text.index("<0" if "<0" in text else "<1") :][:6], []).append(request)
    return found


def judge(done: Done, requests: list[ReceivedRequest], api: Simulator, closings: list[float]) -> None:
    """Make sure that a call came to the end that its last request deserves."""
    last = requests[-1] if requests else None
    fault = plain(last.fault if last else None)
    if not done.result.get("isError"):
        assert last is not None
        assert fault.status == 200
        assert fault.kind in ("", "undone")
        assert done.result["content"][0]["text"] == api.text_of(done.body)
        return
    error = error_of(done.result)
    if error["code"] in OWN_LIMITS:
        assert error["type"] == "rate_limit"
        assert error["retry_after"] > 0
        return
    if error["code"] in LOST and any(
        done.begun - CLOSED_SECONDS <= at <= done.begun + done.seconds for at in closings
    ):
        return
    if error["code"] == "TIMEOUT" and done.seconds >= SHORTEST_LIMIT_SECONDS:
        return  # on a busy machine anything can take as long as a time limit
    assert last is not None, done
    if fault.status != 200:
        kind, codes = BY_STATUS[fault.status]
        assert (error["type"], error["code"] in codes) == (kind, True), error
    else:
        assert error["type"] == "api_error"
        assert error["code"] in BY_KIND[fault.kind], (error, fault)
    if done.is_stream and fault.status == 200 and last.chunks > 1:
        assert error["content"] or fault.kind == "cut", (error, fault)


def without_replaced(requests: list[ReceivedRequest], closings: list[float]) -> list[ReceivedRequest]:
    """Leave out requests whose connection closed under them, and that went out again at once on another.

    A retry comes after a delay of almost a second; this is no retry, because the API never took the request.
    """
    return [
        request
        for request, following in itertools.zip_longest(requests, requests[1:])
        if following is None
        or following.arrived - request.arrived > REPLACED_SECONDS
        or not (plain(request.fault).kind == "drop" or _is_closed_under(request, following, closings))
    ]


def _is_closed_under(request: ReceivedRequest, following: ReceivedRequest, closings: list[float]) -> bool:
    return any(request.arrived - CLOSED_SECONDS <= at <= following.arrived for at in closings)


def judge_repetitions(done: Done, requests: list[ReceivedRequest], closings: list[float]) -> None:
    """Make sure that nothing was repeated too often, or that must not be repeated."""
    assert len(requests) <= 1 + RETRIES
    for request, following in itertools.pairwise(requests):
        fault = plain(request.fault)
        if _is_closed_under(request, following, closings):
            continue  # cut with all others, and what had been written may never have come
        if fault.status != 200:
            assert fault.status in REPEATABLE
        else:
            pytest.fail(f"a request that may be billed was sent again after {fault}")


def worst_cost(request: ReceivedRequest, api: Simulator) -> float:
    """Give what the service may charge for a request that it did not refuse, even if its answer was lost."""
    fault = plain(request.fault)
    if fault.status != 200:
        return 0.0
    body = request.body
    prompt = body["messages"][0]["content"] if "messages" in body else body["prompt"] + body["suffix"]
    words = MOST_TOKENS if fault.kind == "endless" else len(api.text_of(body)) / 3
    return (len(prompt) / 4 + 4) * PROMPT_USD + min(words, MOST_TOKENS) * COMPLETION_USD


def busiest_window(moments: list[float], seconds: float) -> int:
    """Give the most moments that fall into any window of this length."""
    moments, busiest, first = sorted(moments), 0, 0
    for number, moment in enumerate(moments):
        while moments[first] < moment - seconds:
            first += 1
        busiest = max(busiest, number - first + 1)
    return busiest


def everything_written(client: BridgeProcess, folder: Path) -> str:
    """Gather every byte that left the process: its output, its log, its files, its title."""
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return b"".join([*client.said, *files]).decode(errors="replace")


@pytest.fixture
async def api() -> Any:
    """An API that remembers every request."""
    async with Simulator(keys=[KEY], remember=100_000) as one:
        yield one


async def test_a_thousand_calls_with_every_fault_mixed_in(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, **SETTINGS) as client:
        done = await make_all_calls(client, api)
        title = read_title(client.process.pid).decode()
        api.faults.clear()
        usage = await client.call("mercury_usage")
        assert await client.end() == 0
    closings = [one.finished for one in api.requests if one.finished and plain(one.fault) == REFUSED]
    requests = {tag: without_replaced(found, closings) for tag, found in by_tag(api).items()}

    assert sorted(one.tag for one in done) == [f"<{number:04}>" for number in range(CALLS)]
    for one in done:
        judge(one, requests.get(one.tag, []), api, closings)
        judge_repetitions(one, requests.get(one.tag, []), closings)
        assert one.seconds < DEADLINE_SECONDS + SLACK_SECONDS

    outcomes = [error_of(one.result)["code"] if one.result.get("isError") else "ok" for one in done]
    assert outcomes.count("ok") > CALLS / 4
    assert set(outcomes) >= ALWAYS_SEEN
    occurred = {(plain(one.fault), kind_of(tag)) for tag, found in by_tag(api).items() for one in found}
    assert occurred >= set(itertools.product(NAMED.values(), range(KINDS)))

    sent = list(itertools.chain.from_iterable(requests.values()))
    assert sum(worst_cost(request, api) for request in sent) <= BUDGET_USD
    assert usage["structuredContent"]["budget"]["committed_usd"] <= BUDGET_USD
    assert busiest_window([request.arrived for request in sent], WINDOW_SECONDS * 0.5) <= REQUESTS
    assert KEY not in everything_written(client, tmp_path) + title
