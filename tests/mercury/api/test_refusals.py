"""What the API refuses, and what is made of its words."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridgehead.mercury.api.refusals import refused
from tests.mercury.one_answer import answering
from tests.mercury.process import error_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Of bridges, in 8 words"}]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": "plainly wrong"}, "plainly wrong."),
        ({"message": "wrong!"}, "wrong! "),
        ({"detail": "Not like this"}, "Not like this."),
        ({"error": {"message": "no", "param": "stop"}}, "(at stop): no."),
        (b"<html>", "no reason given."),
        (b"Blocked by policy 7", "Blocked by policy 7."),
        ([{"error": {"message": "Gemini sends a list"}}], "Gemini sends a list."),
        (b"[" * 100_000, "no reason given."),
        ({"error": {"message": "x" * 5000}}, "x" * 500 + "."),
    ],
)
async def test_the_reason_for_a_refusal_is_found_and_bounded(tmp_path: Path, body: Any, words: str) -> None:
    async with answering(400, body, tmp_path) as client:
        error = error_of(await client.call(CHAT, ASK))

    assert words in error["message"]
    assert len(error["message"]) < 700


async def test_a_redirect_is_not_blamed_on_the_arguments() -> None:
    error = refused(308, b"", None, path="/chat/completions")

    assert (error.code, error.type) == ("BAD_RESPONSE", "api_error")
    assert "308" in str(error)
    assert "MERCURY_API_URL" in str(error)


async def test_long_waits_are_written_for_people() -> None:
    assert "in 3,600 s" in str(refused(429, b"", 3600.0, path=""))
    assert "in 0.25 s" in str(refused(429, b"", 0.25, path=""))


@pytest.mark.parametrize(
    "body", [b"\xef\xbb\xbf <!DOCTYPE html><title>Blocked</title>", b"error code: 1010"], ids=["page", "text"]
)
async def test_a_403_of_a_firewall_is_not_blamed_on_the_key(tmp_path: Path, body: bytes) -> None:
    async with answering(403, body, tmp_path) as client:
        page = error_of(await client.call(CHAT, ASK))
    async with answering(403, {"error": {"message": "Key has no access"}}, tmp_path) as client:
        key = error_of(await client.call(CHAT, ASK))

    assert (page["type"], page["code"], key["code"]) == ("auth_error", "FORBIDDEN", "INVALID_API_KEY")
    assert "the key is not the problem" in page["message"]


VLLM = (
    "This model's maximum context length is 4096 tokens. However, you requested 5096 tokens (4096 in the "
    "messages, 1000 in the completion). Please reduce the length of the messages or completion."
)


@pytest.mark.parametrize(
    "body",
    [
        {"object": "error", "message": VLLM, "type": "BadRequestError", "param": None, "code": 400},
        {"error": {"message": VLLM, "type": "BadRequestError", "param": None, "code": 400}},
        {"error": {"message": "litellm.ContextWindowExceededError: ...", "type": None, "code": "400"}},
        {"error": {"message": "the request exceeds", "type": "exceed_context_size_error", "code": 400}},
        {"error": {"message": "too long", "code": "context_length_exceeded"}},
        {"error": {"message": "The decoder prompt (length 9) is longer than the maximum model length of 4."}},
        [
            {
                "error": {
                    "message": "The input token count (9) exceeds the maximum number of tokens allowed (4)"
                }
            }
        ],
        {"error": "This model's maximum prompt length is 4096 but the request contains 5096 tokens."},
        {"error": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5096 `inputs` tokens"},
    ],
    ids=["vLLM", "newer vLLM", "LiteLLM", "llama.cpp", "OpenAI", "vLLM V1", "Gemini", "xAI", "TGI"],
)
async def test_a_prompt_that_is_too_long_is_recognised_in_every_wording(body: Any) -> None:
    error = refused(400, msgspec.json.encode(body), None, path="/chat/completions", api="provider x")

    assert error.code == "CONTEXT_LENGTH_EXCEEDED"
    assert "The provider x says" in str(error)
    assert ("1,000 too many" in str(error)) == ("length is 4096" in str(body))


TWO_LIMITS = (
    "You passed 9001 input tokens and requested 16 output tokens. However, the model's context length is "
    "only 9000 tokens, resulting in a maximum input length of 8984 tokens."
)
LONG_INPUT = "This model's maximum context length is 8,192 tokens. Your request has 8,203 input tokens."
LONG_ANSWER = (
    "'max_tokens' is too large: 1000. This model's maximum context length is 1000 tokens and your request "
    "has 203 input tokens (1000 > 1000 - 203)."
)


@pytest.mark.parametrize(
    ("message", "excess"),
    [
        (TWO_LIMITS, "It has 9,001 tokens and the model takes 8,984: 17 too many."),
        (LONG_INPUT, "It has 8,203 tokens and the model takes 8,192: 11 too many."),
        (LONG_ANSWER, ""),
    ],
    ids=["two limits", "input tokens", "max_tokens"],
)
async def test_by_how_much_a_prompt_is_too_long_is_what_vllm_says(message: str, excess: str) -> None:
    body = msgspec.json.encode({"error": {"message": message, "type": "BadRequestError", "code": 400}})

    told = str(refused(400, body, None, path="/chat/completions"))

    assert excess in told
    assert ("too many" in told) == bool(excess)


async def test_a_refusal_of_an_unknown_form_is_quoted() -> None:
    body = msgspec.json.encode({"errors": [{"message": "No such option"}]})

    assert "No such option" in str(refused(400, body, None, path="/chat/completions"))


async def test_a_model_that_litellm_does_not_have_is_not_blamed_on_the_arguments() -> None:
    body = (
        b'{"error": {"message": "/chat/completions: Invalid model name passed in model=x.", "code": "400"}}'
    )

    assert refused(400, body, None, path="/chat/completions").code == "MODEL_NOT_SUITABLE"


async def test_a_list_of_wrong_fields_is_told_field_by_field() -> None:
    detail = [{"loc": ["body", "stop"], "msg": "not a list"}, {"loc": ["body", "n"], "msg": "too large"}]

    error = refused(422, msgspec.json.encode({"detail": detail}), None, path="/chat/completions")

    assert "body.stop: not a list; body.n: too large." in str(error)
