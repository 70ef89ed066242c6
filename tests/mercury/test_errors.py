"""What goes wrong at the API, and what the agent hears of it: category, code, next step."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.errors import CODES, format_seconds
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import BREAKER_FAILURES, BREAKER_SECONDS, ROOT, BridgeProcess, bridge_process
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT, STREAM = "mercury_chat_completion", "mercury_chat_stream"
ASK = {"messages": [{"role": "user", "content": "Of bridges, in 8 words"}]}
BOTH = pytest.mark.parametrize("tool", [CHAT, STREAM])


@BOTH
@pytest.mark.parametrize(
    ("fault", "expected", "word"),
    [
        (Fault(status=400), ("validation_error", "INVALID_REQUEST"), "Correct"),
        (Fault(status=401), ("auth_error", "INVALID_API_KEY"), "MERCURY_API_KEY"),
        (Fault(status=403), ("auth_error", "INVALID_API_KEY"), "doctor"),
        (Fault(status=402), ("auth_error", "BILLING_REQUIRED"), "billing"),
        (Fault(status=404), ("api_error", "NOT_FOUND"), "/chat/completions (404): There is nothing at this"),
        (
            Fault(status=404, message="The model `m` does not exist"),
            ("validation_error", "MODEL_NOT_FOUND"),
            "The model `m` does not exist. Use one of: mercury-3",
        ),
        (
            Fault(status=400, code="context_length_exceeded"),
            ("validation_error", "CONTEXT_LENGTH_EXCEEDED"),
            "too many",
        ),
        (Fault(status=413), ("validation_error", "INVALID_REQUEST"), "413"),
    ],
)
async def test_what_cannot_succeed_is_tried_once_and_explained(
    client: BridgeProcess, api: Simulator, tool: str, fault: Fault, expected: tuple[str, str], word: str
) -> None:
    api.faults.always(fault)
    error = await client.error(tool, {**ASK, "model": "mercury-2"})

    assert (error["type"], error["code"]) == expected
    assert word in error["message"]
    assert len(api.requests.to("/chat/completions")) == 1


@BOTH
@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (408, "api_error", "SERVICE_ERROR"),
        (429, "rate_limit", "RATE_LIMITED"),
        (500, "api_error", "SERVICE_ERROR"),
        (502, "api_error", "SERVICE_UNAVAILABLE"),
        (503, "api_error", "SERVICE_UNAVAILABLE"),
        (504, "api_error", "SERVICE_UNAVAILABLE"),
    ],
)
async def test_what_passes_is_tried_four_times(
    client: BridgeProcess, api: Simulator, tool: str, status: int, kind: str, code: str
) -> None:
    api.faults.next(*[Fault(status=status)] * 4)
    error = await client.error(tool, ASK)

    assert (error["type"], error["code"]) == (kind, code)
    assert len(api.requests.to("/chat/completions")) == 4


@BOTH
async def test_what_passes_is_answered_in_the_end(client: BridgeProcess, api: Simulator, tool: str) -> None:
    api.faults.next(Fault(status=500), Fault(status=503), Fault(status=408))
    result = await client.call(tool, ASK)

    assert result["content"][0]["text"] == api.text_of({**ASK, "model": "mercury-2"})
    assert len(api.requests.to("/chat/completions")) == 4


async def test_how_much_too_long_a_request_is_is_said(client: BridgeProcess, api: Simulator) -> None:
    message = "This model takes 32,000 tokens. However, your messages resulted in 40012 tokens."
    api.faults.next(Fault(status=400, code="context_length_exceeded", message=message))

    error = await client.error(CHAT, {**ASK, "model": "mercury-2"})

    assert "8,012 too many" in error["message"]


@pytest.mark.parametrize(
    ("fault", "least"),
    [
        (Fault(status=429, retry_after_ms="150"), 0.15),
        (Fault(status=503, retry_after="0.2"), 0.2),
        (Fault(status=429, retry_after_date=2.0), 0.9),
        (Fault(status=429, retry_after="soon"), 0.0),
    ],
    ids=["milliseconds", "seconds", "date", "nonsense"],
)
async def test_the_api_says_when_to_try_again_and_it_is_tried_then(
    client: BridgeProcess, api: Simulator, fault: Fault, least: float
) -> None:
    api.faults.next(fault)
    await client.call(CHAT, ASK)

    first, second = api.requests.to("/chat/completions")
    assert least <= second.arrived - first.arrived


async def test_a_wait_beyond_the_deadline_is_not_begun(client: BridgeProcess, api: Simulator) -> None:
    api.faults.next(Fault(status=429, retry_after="3600"))
    begun = time.monotonic()
    error = await client.error(CHAT, ASK)

    assert (error["type"], error["retry_after"]) == ("rate_limit", 3600)
    assert time.monotonic() - begun < PATIENCE
    assert len(api.requests.to("/chat/completions")) == 1


@BOTH
async def test_a_call_ends_within_its_own_time(client: BridgeProcess, api: Simulator, tool: str) -> None:
    api.faults.always(Fault(delay=10 * PATIENCE))
    begun = time.monotonic()
    error = await client.error(tool, {**ASK, "timeout_ms": 200})

    assert (error["type"], error["code"]) == ("api_error", "TIMEOUT")
    assert 0.15 < time.monotonic() - begun < PATIENCE


@pytest.mark.parametrize(
    ("kind", "code"),
    [("garbage", "BAD_RESPONSE"), ("short", "BAD_RESPONSE"), ("error", "STREAM_ERROR")],
)
async def test_an_answer_that_cannot_be_used_is_an_error_and_not_asked_for_again(
    client: BridgeProcess, api: Simulator, kind: Any, code: str
) -> None:
    api.faults.next(Fault(kind=kind))
    error = await client.error(CHAT, ASK)

    assert (error["type"], error["code"]) == ("api_error", code)
    assert len(api.requests.to("/chat/completions")) == 1


async def test_an_answer_cut_off_may_be_billed_and_is_not_asked_for_again(
    client: BridgeProcess, api: Simulator
) -> None:
    api.faults.next(Fault(kind="cut"))
    error = await client.error(CHAT, ASK)

    assert error["code"] == "CONNECTION_LOST"
    assert "may be billed" in error["message"]
    assert len(api.requests.to("/chat/completions")) == 1


@BOTH
async def test_a_request_that_took_too_long_is_not_sent_again(
    client: BridgeProcess, api: Simulator, tool: str
) -> None:
    api.faults.next(Fault(delay=10 * PATIENCE))
    error = await client.error(tool, {**ASK, "timeout_ms": 500})

    assert error["code"] == "TIMEOUT"
    assert "0.5 s" in error["message"]
    assert "may be billed" in error["message"]
    assert len(api.requests.to("/chat/completions")) == 1


@BOTH
async def test_a_connection_that_closes_without_a_byte_may_be_billed_and_is_not_asked_again(
    client: BridgeProcess, api: Simulator, tool: str
) -> None:
    await client.call(CHAT, ASK)  # so that a kept connection is used
    api.faults.next(Fault(kind="drop"))
    error = await client.error(tool, ASK)

    assert error["code"] == "CONNECTION_LOST"
    assert "may be billed" in error["message"]
    assert len(api.requests.to("/chat/completions")) == 2


async def test_where_nothing_listens_the_address_is_named(client: BridgeProcess, api: Simulator) -> None:
    async with api.refusing():
        error = await client.error(CHAT, ASK)

    assert (error["type"], error["code"]) == ("api_error", "CONNECTION_FAILED")
    assert api.url in error["message"]


async def test_a_dead_service_is_left_alone_and_found_again(api: Simulator, tmp_path: Path) -> None:
    settings = {BREAKER_FAILURES: "6", BREAKER_SECONDS: "0.3"}
    api.faults.always(Fault(status=503))
    async with bridge_process(api.url, tmp_path, **settings) as client:
        await client.error(CHAT, ASK)
        await client.error(CHAT, ASK)
        error = await client.error(CHAT, ASK)
        assert (error["code"], error["type"]) == ("SERVICE_DOWN", "api_error")
        assert 0 < error["retry_after"] <= 0.3
        assert len(api.requests.to("/chat/completions")) == 6
        assert (await client.call("mercury_usage"))["structuredContent"]["is_service_down"]

        api.faults.always(None)
        deadline = time.monotonic() + PATIENCE
        while "isError" in (result := await client.call(CHAT, ASK)):
            assert time.monotonic() < deadline
    assert result["content"][0]["text"] == api.text_of({**ASK, "model": "mercury-2"})
    assert len(api.requests.to("/chat/completions")) == 7


async def test_what_is_wrong_with_a_request_never_counts_as_a_dead_service(
    api: Simulator, tmp_path: Path
) -> None:
    api.faults.always(Fault(status=429, retry_after_ms="1"))
    async with bridge_process(api.url, tmp_path, **{BREAKER_FAILURES: "1"}) as client:
        for _ in range(3):
            assert (await client.error(CHAT, ASK))["code"] == "RATE_LIMITED"

    assert len(api.requests.to("/chat/completions")) == 12


async def test_the_number_of_retries_is_a_setting(api: Simulator, tmp_path: Path) -> None:
    api.faults.always(Fault(status=503))
    async with bridge_process(api.url, tmp_path, MERCURY_MAX_RETRIES="0") as client:
        await client.error(CHAT, ASK)

    assert len(api.requests.to("/chat/completions")) == 1


async def test_only_allowed_models_are_used(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, MERCURY_ALLOWED_MODELS="mercury-2,mercury-edit-2") as client:
        error = await client.error(CHAT, {**ASK, "model": "mercury-3"})
        listed = (await client.call("mercury_list_models"))["structuredContent"]["models"]

    assert (error["type"], error["code"]) == ("validation_error", "MODEL_NOT_ALLOWED")
    assert {model["id"] for model in listed} == {"mercury-2", "mercury-edit-2"}
    assert not api.requests.to("/chat/completions")


async def test_a_bug_shows_nothing_but_its_reference(tmp_path: Path) -> None:
    bridge = make_bridge(MercurySettings({"BRIDGEHEAD_STATE_DIR": str(tmp_path)}))
    failure = bridge.dialect.bug("1a2b")

    assert json.loads(str(failure))["error"]["code"] == "INTERNAL_ERROR"
    assert "1a2b" in str(failure)


async def test_every_code_stands_in_the_documents_with_its_type() -> None:
    section = (ROOT / "docs/mercury.md").read_text(encoding="utf-8").partition("## Errors")[2]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    documented = {code: kind.strip(" `") for _, kind, codes, _ in rows[:4] for code in codes.split("`")[1::2]}

    assert documented == {code: row.type for code, row in CODES.items()}


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(0.0104, "0.01 s"), (0.001, "0.01 s"), (0.25, "0.25 s"), (1.234, "1.2 s"), (3600, "3,600 s")],
)
async def test_a_duration_has_the_digits_that_people_read(seconds: float, written: str) -> None:
    assert format_seconds(seconds) == written
