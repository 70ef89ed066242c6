"""Answers as compatible servers really send them, each with what the agent sees: a paid answer arrives."""

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from tests.mercury.one_answer import USAGE, answering, completion
from tests.mercury.process import KEY, environment, error_of
from tests.support.checked import connect
from tests.support.fake_api import Answer, Request, fake_api
from tests.support.tcp import serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
STREAM = "mercury_chat_stream"
ASK = {"messages": [{"role": "user", "content": "Of shapes, in 8 words"}]}
END = {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": USAGE}
BOM = b"\xef\xbb\xbf"


def events(*chunks: dict[str, Any] | str, start: bytes = b"", after: bytes = b"") -> bytes:
    """Give a stream of chunks, as JSON or as its text, up to `[DONE]`."""
    texts = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    body = b"".join(b"data: %b\n\n" % text.encode() for text in texts)
    return start + body + b"data: [DONE]\n\n" + after


def piece(content: Any = None, **delta: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"delta": {"content": content, **delta}}]}


def message(**parts: Any) -> dict[str, Any]:
    return completion(choices=[{"message": {"role": "assistant", **parts}, "finish_reason": "stop"}])


def tool_piece(arguments: Any, name: str | None = None, **place: Any) -> dict[str, Any]:
    return piece(tool_calls=[{**place, "function": {"name": name, "arguments": arguments}}])


async def ask(body: Any, folder: Path, tool: str = CHAT, **more: Any) -> Any:
    async with answering(200, body, folder) as client:
        return await client.call(tool, {**ASK, **more})


async def ask_in_pieces(tool: str, folder: Path, length: int, *pieces: bytes) -> Any:
    """Ask a server that sends its answer in pieces, announces `length` bytes, and closes the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length)
        for data in pieces:
            writer.write(data)
            await writer.drain()
            for _ in range(50):  # turns of the loop, in which the client reads this piece
                await asyncio.sleep(0)

    async with serving(serve) as port:
        given = environment(f"http://127.0.0.1:{port}/v1", folder)
        async with connect(make_bridge(MercurySettings(given))) as client:
            return await client.call(tool, ASK)


def calls_of(result: Any) -> list[tuple[str, str, str]]:
    return [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in result["structuredContent"]["tool_calls"]
    ]


def notes_of(result: Any) -> list[str]:
    """Return the notes, which are in the structure and in a text block of their own."""
    notes: list[str] = result["structuredContent"].get("notes", [])
    told = [line for block in result["content"][1:] for line in block["text"].splitlines()]
    assert told == [f"Note: {note}" for note in notes]
    return notes


# --- streamed tool calls -----------------------------------------------------------------------------------

TWO_CALLS = [("a1", "get_a", '{"x":1}'), ("b2", "get_b", '{"y":2}')]


@pytest.mark.parametrize(
    "deltas",
    [
        [tool_piece('{"x":1}', "get_a", id="a1"), tool_piece('{"y":2}', "get_b", id="b2")],
        [
            tool_piece('{"x":1}', "get_a", id="a1", index=0),
            tool_piece('{"y":2}', "get_b", id="b2", index=0),
        ],
        [
            tool_piece("", "get_a", id="a1", index=0),
            tool_piece('{"x"', index=0),
            tool_piece(":1}", index=0),
            tool_piece("", "get_b", id="b2", index=1),
            tool_piece('{"y":2}', index=1),
        ],
        [
            tool_piece('{"x"', "get_a", id="a1", index=0),
            tool_piece(":1}", "get_a", id="a1", index=0),
            tool_piece('{"y":2}', "get_b", id="b2", index=1),
        ],
        [
            tool_piece('{"x"', "get_a", id="a1"),
            tool_piece('{"y"', "get_b", id="b2"),
            tool_piece(":1}", id="a1"),
            tool_piece(":2}", id="b2"),
        ],
        [
            tool_piece({"x": 1}, "get_a", id="a1", index=0),
            tool_piece({"y": 2}, "get_b", id="b2", index=1),
        ],
        [
            tool_piece("", "get_a", id="a1", index=0),
            tool_piece('{"x"', id="a2", index=0),
            tool_piece(":1}", id="a3", index=0),
            tool_piece("", "get_b", id="b2", index=0),
            tool_piece('{"y":2}', id="b3", index=0),
        ],
    ],
    ids=[
        *("no index", "same index, new id", "in pieces", "name repeated", "alternating", "objects"),
        "an id for each piece",
    ],
)
async def test_streamed_tool_calls_stay_apart(tmp_path: Path, deltas: list[dict[str, Any]]) -> None:
    result = await ask(events(*deltas, END), tmp_path, STREAM)

    assert calls_of(result) == TWO_CALLS
    assert json.loads(result["content"][0]["text"])[1]["function"] == {
        "name": "get_b",
        "arguments": '{"y":2}',
    }
    assert notes_of(result) == []


async def test_streamed_tool_calls_without_any_id_get_one_each(tmp_path: Path) -> None:
    deltas = [tool_piece('{"x":1}', "get_a"), tool_piece('{"x":2}', "get_a"), tool_piece('{"y":2}', "get_b")]

    result = await ask(events(*deltas, END), tmp_path, STREAM)

    assert calls_of(result) == [
        ("call_1", "get_a", '{"x":1}'),
        ("call_2", "get_a", '{"x":2}'),
        ("call_3", "get_b", '{"y":2}'),
    ]
    assert "no id" in notes_of(result)[0]


async def test_whole_calls_of_one_function_stay_apart_without_ids(tmp_path: Path) -> None:
    deltas = [tool_piece('{"x":1}', "get_a", index=0), tool_piece('{"x":2}', "get_a", index=0)]

    result = await ask(events(*deltas, END), tmp_path, STREAM)

    assert [arguments for _, _, arguments in calls_of(result)] == ['{"x":1}', '{"x":2}']


async def test_arguments_that_are_not_json_are_named(tmp_path: Path) -> None:
    deltas = [tool_piece('{"x":1}', "get_a", id="a1"), tool_piece('{"y":2}', "get_b", id="a1")]

    result = await ask(events(*deltas, END), tmp_path, STREAM)

    assert notes_of(result) == ["The arguments of tool call 1 are not valid JSON."]


async def test_tool_calls_beside_a_text_reach_clients_that_show_text_alone(tmp_path: Path) -> None:
    call = {"id": "a1", "type": "function", "function": {"name": "get_a", "arguments": "{}"}}

    result = await ask(message(content="Let me look.", tool_calls=[call]), tmp_path)

    text, calls = result["content"]
    assert text["text"] == "Let me look."
    assert json.loads(calls["text"].removeprefix("Tool calls: ")) == result["structuredContent"]["tool_calls"]


# --- what compatible servers leave out or write differently ------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "expected_model"),
    [
        ({"model": None}, "m"),
        ({"usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": None}}, "m"),
    ],
    ids=["model null", "total null"],
)
async def test_a_null_counts_as_left_out(
    tmp_path: Path, changes: dict[str, Any], expected_model: str
) -> None:
    result = await ask(completion(**changes), tmp_path)

    metadata = result["structuredContent"]["metadata"]
    assert (result["content"][0]["text"], metadata["model"]) == ("hi", expected_model)
    assert metadata["usage"]["total_tokens"] == 7
    assert notes_of(result) == []


async def test_a_tool_call_may_have_no_id_and_its_arguments_as_an_object(tmp_path: Path) -> None:
    call = {"id": None, "type": "function", "function": {"name": "get_a", "arguments": {"x": [1]}}}

    result = await ask(message(content=None, tool_calls=[call]), tmp_path)

    assert calls_of(result) == [("call_1", "get_a", '{"x":[1]}')]
    assert "call_1" in notes_of(result)[0]


@pytest.mark.parametrize("tool", [CHAT, STREAM])
async def test_content_in_parts_is_put_together(tmp_path: Path, tool: str) -> None:
    parts = [{"type": "text", "text": "a"}, "b", {"type": "image_url"}]
    body = message(content=parts) if tool == CHAT else events(piece(parts), END)

    assert (await ask(body, tmp_path, tool))["content"][0]["text"] == "ab"


@pytest.mark.parametrize("tool", [CHAT, STREAM])
async def test_reasoning_and_its_summary_come_beside_the_answer(tmp_path: Path, tool: str) -> None:
    summary = {"content": "It thought.", "status": "complete"}
    if tool == CHAT:
        body: Any = message(content="hi", reasoning_content="Hm, well.") | {"reasoning_summary": summary}
    else:
        thoughts = [piece(reasoning_content="Hm, "), piece(reasoning_content="well.")]
        body = events(*thoughts, piece("hi"), END, {"choices": [], "reasoning_summary": summary})

    result = await ask(body, tmp_path, tool)

    assert result["content"] == [{"type": "text", "text": "hi"}]
    structured = result["structuredContent"]
    assert (structured["reasoning"], structured["reasoning_summary"]) == ("Hm, well.", "It thought.")


@pytest.mark.parametrize("tool", [CHAT, STREAM])
async def test_reasoning_is_found_among_the_parts_of_a_content(tmp_path: Path, tool: str) -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Six by seven."}]}
    parts = [thinking, {"type": "text", "text": "42"}]

    result = await ask(
        events(piece(parts), END) if tool == STREAM else message(content=parts), tmp_path, tool
    )

    assert result["content"][0]["text"] == "42"
    assert result["structuredContent"]["reasoning"] == "Six by seven."


async def test_reasoning_without_an_answer_reaches_clients_that_show_text_alone(tmp_path: Path) -> None:
    result = await ask(message(content="", reasoning_content="It is 42."), tmp_path)

    assert result["content"][0]["text"] == "It is 42."
    assert result["structuredContent"]["content"] == ""
    assert notes_of(result) == ["The answer is empty; the text is the model's reasoning."]


@pytest.mark.parametrize("tool", [CHAT, STREAM])
async def test_a_refusal_reaches_the_agent(tmp_path: Path, tool: str) -> None:
    parts = {"content": None, "refusal": "I may not."}
    body = message(**parts) if tool == CHAT else events(piece(**parts), END)

    result = await ask(body, tmp_path, tool)

    assert result["content"][0]["text"] == "I may not."
    assert result["structuredContent"]["refusal"] == "I may not."
    assert notes_of(result) == ["The model refused to answer: I may not."]


async def test_usage_is_found_where_groq_has_it(tmp_path: Path) -> None:
    used = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}

    result = await ask(events(piece("hi"), {**END, "x_groq": {"usage": used}}), tmp_path, STREAM)

    assert result["structuredContent"]["metadata"]["usage"] == used


async def test_the_cost_is_that_of_the_api_where_it_names_one(tmp_path: Path) -> None:
    used = {"prompt_tokens": 3, "completion_tokens": 4, "cost": 0.0125}

    result = await ask(completion(usage=used), tmp_path)

    assert result["structuredContent"]["metadata"]["cost_usd"] == 0.0125


@pytest.mark.parametrize("tool", [CHAT, STREAM])
@pytest.mark.parametrize("error", [None, "", {}, False])
async def test_an_empty_error_is_none(tmp_path: Path, tool: str, error: Any) -> None:
    body = completion(error=error) if tool == CHAT else events({**piece("hi"), "error": error}, END)

    assert (await ask(body, tmp_path, tool))["content"] == [{"type": "text", "text": "hi"}]


async def test_a_first_chunk_without_choices_is_no_part_of_the_text(tmp_path: Path) -> None:
    first = {"choices": [], "model": "", "prompt_filter_results": [{"prompt_index": 0}]}

    result = await ask(events(first, piece("hi"), END), tmp_path, STREAM)

    assert result["content"] == [{"type": "text", "text": "hi"}]


# --- characters --------------------------------------------------------------------------------------------


async def test_an_emoji_that_is_split_over_two_chunks_is_whole_again(tmp_path: Path) -> None:
    chunks = [
        '{"choices":[{"delta":{"content":"a \\ud83d"}}]}',
        '{"choices":[{"delta":{"content":"\\ude00 b"}}]}',
    ]

    result = await ask(events(*chunks, END), tmp_path, STREAM)

    assert result["content"] == [{"type": "text", "text": "a 😀 b"}]


async def test_an_emoji_that_is_split_in_arguments_is_whole_again(tmp_path: Path) -> None:
    text = json.dumps(tool_piece("XX", "get_a", id="a1", index=0))
    chunks = [text.replace("XX", '[\\"\\ud83d'), text.replace("XX", '\\ude00\\"]')]

    result = await ask(events(*chunks, END), tmp_path, STREAM)

    assert calls_of(result) == [("a1", "get_a", '["😀"]')]


@pytest.mark.parametrize("tool", [CHAT, STREAM])
async def test_half_a_character_is_replaced_and_the_rest_arrives(tmp_path: Path, tool: str) -> None:
    body = json.dumps(completion()).replace("hi", "a \\ud83d b").encode()
    if tool == STREAM:
        body = events('{"choices":[{"delta":{"content":"a \\ud83d"}}]}', piece(" b"), END)

    assert (await ask(body, tmp_path, tool))["content"][0]["text"] == "a � b"


async def test_bytes_that_are_not_utf_8_are_replaced_with_a_note(tmp_path: Path) -> None:
    body = json.dumps(completion()).encode().replace(b"hi", b"a\xffb")

    result = await ask(body, tmp_path)

    assert result["content"][0]["text"] == "a�b"
    assert "U+FFFD" in notes_of(result)[0]


async def test_a_key_in_an_answer_that_needs_tolerance_is_hidden(tmp_path: Path) -> None:
    body = json.dumps(completion(model=5)).replace("hi", f"Bearer {KEY} \\ud83d").encode()

    result = await ask(body, tmp_path)

    assert KEY not in json.dumps(result)
    assert result["content"][0]["text"].startswith("Bearer ")


# --- the frame of the answer -------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [b"", BOM])
async def test_json_in_answer_to_a_stream_is_an_answer(tmp_path: Path, start: bytes) -> None:
    body = start + json.dumps(completion(usage={"prompt_tokens": 3, "completion_tokens": 4})).encode()

    result = await ask(body, tmp_path, STREAM)

    assert result["content"][0]["text"] == "hi"
    assert result["structuredContent"]["metadata"]["usage"]["total_tokens"] == 7
    assert notes_of(result) == ["The API sent the answer in one piece, not as a stream."]


@pytest.mark.parametrize("start", [BOM, b"\n \n", b"\xef"])
async def test_json_instead_of_a_stream_may_begin_late(start: bytes, tmp_path: Path) -> None:
    body = (BOM if start == b"\xef" else start) + json.dumps(completion()).encode()

    result = await ask_in_pieces(STREAM, tmp_path, len(body), start, body[len(start) :])

    assert result["content"][0]["text"] == "hi"


async def test_a_stream_in_answer_to_a_call_without_one_is_an_answer(tmp_path: Path) -> None:
    used = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}

    result = await ask(events(piece("one"), piece(" two"), END, used), tmp_path)

    assert result["content"][0]["text"] == "one two"
    assert result["structuredContent"]["metadata"]["usage"]["total_tokens"] == 7
    assert notes_of(result) == ["The API sent the answer as a stream, not in one piece."]


async def test_any_status_of_success_brings_an_answer(tmp_path: Path) -> None:
    async with answering(201, completion(), tmp_path) as client:
        result = await client.call(CHAT, ASK)

    assert result["content"][0]["text"] == "hi"


async def test_spaces_around_the_last_event_do_not_matter(tmp_path: Path) -> None:
    body = events(piece("hi"), END).replace(b"[DONE]", b" [DONE] ")

    assert (await ask(body, tmp_path, STREAM))["content"] == [{"type": "text", "text": "hi"}]


async def test_a_byte_order_mark_hides_nothing(tmp_path: Path) -> None:
    streamed = await ask(events(piece("one"), piece(" two"), END, start=BOM), tmp_path, STREAM)
    whole = await ask(BOM + json.dumps(completion()).encode(), tmp_path)

    assert (streamed["content"][0]["text"], whole["content"][0]["text"]) == ("one two", "hi")


@pytest.mark.parametrize("after", [b"data: [DONE]\n\n", b": bye\n\n"], ids=["its end again", "a comment"])
async def test_nothing_after_the_end_of_a_stream_is_nothing_to_tell(tmp_path: Path, after: bytes) -> None:
    body = events(piece("hi"), END)

    together = await ask(body + after, tmp_path, STREAM)
    apart = await ask_in_pieces(STREAM, tmp_path, len(body + after), body, after)

    assert notes_of(together) == notes_of(apart) == []


async def test_events_may_be_separated_by_line_ends_alone(tmp_path: Path) -> None:
    body = events(piece("one "), piece("two"), END).replace(b"\n\n", b"\n")

    assert (await ask(body, tmp_path, STREAM))["content"][0]["text"] == "one two"


@pytest.mark.parametrize("tool", [CHAT, STREAM])
async def test_a_compressed_answer_is_an_answer(tmp_path: Path, tool: str) -> None:
    plain = events(piece("one "), piece("two"), END) if tool == STREAM else json.dumps(completion()).encode()

    result = await ask(gzip.compress(plain), tmp_path, tool)

    assert result["content"][0]["text"] == ("one two" if tool == STREAM else "hi")
    assert notes_of(result) == ["The API sent the answer in one piece, not as a stream."] * (tool == STREAM)


async def test_no_compression_is_asked_for(tmp_path: Path) -> None:
    async def respond(request: Request) -> Answer:
        return Answer(200, json.dumps(completion()).encode())

    async with fake_api(respond) as api:
        bridge = make_bridge(MercurySettings(environment(f"{api.url}/v1", tmp_path)))
        async with connect(bridge) as client:
            await client.call(CHAT, ASK)

    assert {request.headers["accept-encoding"] for request in api.requests} == {"identity"}


async def test_a_damaged_compression_is_no_answer(tmp_path: Path) -> None:
    assert error_of(await ask(gzip.compress(b"x" * 100)[:-20], tmp_path))["code"] == "BAD_RESPONSE"


@pytest.mark.parametrize("word", ["STOP", "eos", "eos_token", "end_turn"])
async def test_an_answer_that_ends_with_another_word_for_stop_is_whole(tmp_path: Path, word: str) -> None:
    async with answering(
        200, completion(choices=[{"text": "hi", "finish_reason": word}]), tmp_path
    ) as client:
        result = await client.call("mercury_edit_completion", {"prompt": "Edit"})

    assert result["content"] == [{"type": "text", "text": "hi"}]


async def test_an_answer_without_a_finish_reason_arrives_with_a_note(tmp_path: Path) -> None:
    body = completion(choices=[{"message": {"content": "The answer is 42"}}])

    result = await ask(body, tmp_path)
    async with answering(200, body, tmp_path) as client:
        edit = error_of(await client.call("mercury_edit_completion", {"prompt": "Edit"}))

    assert result["content"][0]["text"] == "The answer is 42"
    assert notes_of(result) == ["The answer may not be whole: the API does not say why it ends."]
    assert (edit["code"], edit["content"]) == ("EDIT_INCOMPLETE", "The answer is 42")


async def test_text_after_the_end_of_a_stream_is_not_part_of_the_answer(tmp_path: Path) -> None:
    after = b"data: %b\n\n" % json.dumps(piece("and more")).encode()

    result = await ask(events(piece("hi"), END, after=after), tmp_path, STREAM)

    assert result["content"][0]["text"] == "hi"
    assert "after the end" in notes_of(result)[0]


@pytest.mark.parametrize("tool", [CHAT, STREAM])
async def test_a_field_that_cannot_be_read_is_ignored_and_named(tmp_path: Path, tool: str) -> None:
    odd: dict[str, Any] = {"usage": {"prompt_tokens": "3", "completion_tokens": "many"}, "model": ["m"]}
    body = completion(**odd) if tool == CHAT else events(piece("hi"), {**END, **odd})

    result = await ask(body, tmp_path, tool)

    assert result["content"][0]["text"] == "hi"
    assert "usage" not in result["structuredContent"]["metadata"]
    ignored, unknown = notes_of(result)
    assert "model" in ignored
    assert "token counts cannot be true" in unknown


# --- errors inside an answer, and answers that are none ----------------------------------------------------


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"error": {"message": "No capacity", "code": 502}}, "(502): No capacity."),
        ({"error": {"message": "No capacity", "type": "overloaded"}}, "(overloaded): No capacity."),
        ({"error": "No capacity"}, "No capacity."),
        (
            {"detail": [{"loc": ["body", "messages"], "msg": "field required"}]},
            "body.messages: field required.",
        ),
        ({"detail": {"error": {"message": "No capacity"}}}, "No capacity."),
        ({"object": "error", "message": "No capacity"}, "No capacity."),
        ({"choices": [{"finish_reason": "error", "error": {"message": "No capacity"}}]}, "No capacity."),
        (
            {"error": {"message": "Provider returned error", "metadata": {"raw": "No capacity"}}},
            "Provider returned error: No capacity.",
        ),
    ],
    ids=["object", "type", "string", "detail list", "detail object", "message", "choice", "metadata"],
)
async def test_the_reason_of_an_error_inside_a_200_is_kept(tmp_path: Path, body: Any, reason: str) -> None:
    error = error_of(await ask(body, tmp_path))

    assert error["code"] == "STREAM_ERROR"
    assert reason in error["message"]


async def test_an_error_inside_a_stream_keeps_its_reason_and_the_text_so_far(tmp_path: Path) -> None:
    error = error_of(await ask(events(piece("half"), {"error": "No capacity"}), tmp_path, STREAM))

    assert (error["code"], error["content"]) == ("STREAM_ERROR", "half")
    assert "No capacity." in error["message"]


@pytest.mark.parametrize(
    "chunk",
    [{"object": "error", "message": "No capacity", "code": 500}, {"detail": "No capacity"}],
    ids=["message", "detail"],
)
async def test_the_reason_in_a_stream_is_found_in_other_forms_too(tmp_path: Path, chunk: Any) -> None:
    error = error_of(await ask(events(piece("half"), chunk), tmp_path, STREAM))

    assert (error["code"], error["content"]) == ("STREAM_ERROR", "half")
    assert "No capacity." in error["message"]


@pytest.mark.parametrize(
    ("deltas", "received"),
    [
        ([tool_piece('{"x":1', "get_a", id="a1", index=0)], '{\\"x\\":1'),
        ([piece("Let me look."), tool_piece('{"x":1', "get_a", id="a1")], "Let me look."),
        ([piece("Let me look."), tool_piece('{"x":1', "get_a", id="a1")], '{\\"x\\":1'),
        ([piece(reasoning_content="Hm, well.")], "Hm, well."),
        ([piece(refusal="I may")], "I may"),
        ([{"choices": [{"delta": "The answer is 42"}]}, END], "The answer is 42"),
    ],
    ids=["tool call", "text and call", "call and text", "reasoning", "refusal", "unreadable"],
)
async def test_a_stream_that_breaks_gives_what_had_come(
    tmp_path: Path, deltas: list[dict[str, Any]], received: str
) -> None:
    body = events(*deltas) if END in deltas else events(*deltas).replace(b"data: [DONE]\n\n", b"")

    error = error_of(await ask(body, tmp_path, STREAM))

    assert error["code"] == "STREAM_INCOMPLETE"
    assert received in error["content"]


async def test_a_text_in_answer_to_a_stream_comes_with_the_error(tmp_path: Path) -> None:
    error = error_of(await ask(b"The answer\n\nis 42", tmp_path, STREAM))

    assert (error["code"], error["content"]) == ("BAD_RESPONSE", "The answer\n\nis 42")


async def test_an_answer_of_which_nothing_can_be_read_is_no_empty_answer(tmp_path: Path) -> None:
    for message_ in ("The answer is 42", {"tool_calls": [{"id": "a", "function": "The answer is 42"}]}):
        choice = {"message": message_, "finish_reason": "stop"}
        error = error_of(await ask(completion(choices=[choice]), tmp_path))

        assert error["code"] == "BAD_RESPONSE"
        assert "The answer is 42" in error["content"]


@pytest.mark.parametrize("tool", [CHAT, STREAM])
async def test_a_call_of_the_older_form_is_a_call(tmp_path: Path, tool: str) -> None:
    called = {"function_call": {"name": "get_a", "arguments": '{"x":1}'}}
    end = {"finish_reason": "function_call"}
    whole = completion(choices=[{"message": called, **end}])
    streamed = events(piece(**called), {"choices": [{"delta": {}, **end}]})

    result = await ask(whole if tool == CHAT else streamed, tmp_path, tool)

    assert calls_of(result) == [("call_1", "get_a", '{"x":1}')]


async def test_a_decision_that_is_a_text_comes_with_the_error(tmp_path: Path) -> None:
    async with answering(200, completion(), tmp_path) as client:
        question = {"name": "is_it", "type": "noul"}
        error = error_of(await client.call("mercury_decide", {"state": "x", "questions": [question]}))

    assert error["code"] == "BAD_RESPONSE"
    assert '"hi"' in error["content"]


async def test_an_answer_that_breaks_off_comes_with_what_was_received(tmp_path: Path) -> None:
    received = b'{"choices": [{"message": {"content": "The answer is 42'

    error = error_of(await ask_in_pieces(CHAT, tmp_path, 9999, received))

    assert error["code"] == "CONNECTION_LOST"
    assert "The answer is 42" in error["content"]


@pytest.mark.parametrize(
    ("body", "received"),
    [
        (b"The answer is 42", "The answer is 42"),
        (b'{"choices": [{"message": {"content": "The answer is 42"', "The answer is 42"),
        ({"output": "The answer is 42"}, "The answer is 42"),
    ],
    ids=["text", "cut JSON", "another form"],
)
async def test_an_unusable_answer_comes_with_what_was_received(
    tmp_path: Path, body: Any, received: str
) -> None:
    error = error_of(await ask(body, tmp_path))

    assert error["code"] == "BAD_RESPONSE"
    assert "`content` has what came." in error["message"]
    assert received in error["content"]


async def test_what_was_received_shows_no_key_and_is_bounded(tmp_path: Path) -> None:
    escaped = "".join(f"\\u{ord(character):04x}" for character in KEY)
    body = f'{{"a": "{escaped}", "b": "{KEY}", {"x" * 100_000}'.encode()

    error = error_of(await ask(body, tmp_path))

    assert KEY not in error["content"]
    assert escaped not in error["content"]
    assert len(error["content"]) < 21_000


async def test_the_words_of_a_gateway_in_a_stream_are_the_reason(tmp_path: Path) -> None:
    error = error_of(await ask(events(piece("half"), "upstream connect error"), tmp_path, STREAM))

    assert (error["code"], error["content"]) == ("STREAM_ERROR", "half")
    assert "broke the answer off: upstream connect error." in error["message"]


async def test_an_error_of_a_choice_in_a_stream_keeps_its_reason(tmp_path: Path) -> None:
    failed = {
        "delta": {"content": ""},
        "finish_reason": "error",
        "error": {"code": 502, "message": "It left"},
    }

    error = error_of(await ask(events(piece("half"), {"choices": [failed]}), tmp_path, STREAM))

    assert (error["code"], error["content"]) == ("STREAM_ERROR", "half")
    assert "(502): It left." in error["message"]


async def test_an_unreadable_chunk_comes_with_what_was_received(tmp_path: Path) -> None:
    alone = error_of(await ask(events('{"broken', END), tmp_path, STREAM))
    later = error_of(await ask(events(piece("half"), '{"broken', END), tmp_path, STREAM))

    assert (alone["code"], alone["content"]) == ("STREAM_INCOMPLETE", '{"broken')
    assert later["content"] == "half"


async def test_an_answer_that_was_cut_short_says_so_in_text_and_structure(tmp_path: Path) -> None:
    choice = {"message": {"content": "hi"}, "finish_reason": "length"}

    result = await ask(completion(choices=[choice], warning="Temperature was reset."), tmp_path)

    assert result["content"][0]["text"] == "hi"
    assert result["structuredContent"]["incomplete"] == notes_of(result)[0]
    assert notes_of(result)[1] == "Temperature was reset."


# --- what newer and stranger servers do --------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 5])
async def test_a_server_that_ignores_diffusing_loses_no_piece(tmp_path: Path, size: int) -> None:
    text = "mocked answer of litellm"
    pieces = [piece(text[at : at + size]) for at in range(0, len(text), size)]
    used = {**END, "usage": {"prompt_tokens": 3, "completion_tokens": 6, "total_tokens": 9}}

    result = await ask(events(*pieces, used), tmp_path, STREAM, diffusing=True)

    assert result["content"][0]["text"] == text
    assert notes_of(result) == ["The API ignored `diffusing` and sent the answer in pieces."]


@pytest.mark.parametrize(
    "states",
    [
        ["▓▒░#%&@* +=~?▓", "mo░#%& an@*er ", "mocked an@*er ", "mocked answer "],
        ["▓▒", "ok"],
        ["the", "the cat", "the cat sat on"],
    ],
    ids=["noise", "short", "growing"],
)
async def test_of_states_the_last_one_is_the_answer(tmp_path: Path, states: list[str]) -> None:
    used = {"prompt_tokens": 3, "completion_tokens": len(states[-1]) // 4 + 1}

    result = await ask(events(*map(piece, states), {**END, "usage": used}), tmp_path, STREAM, diffusing=True)

    assert result["content"][0]["text"] == states[-1]
    assert notes_of(result) == []


async def test_a_stream_that_ends_with_its_usage_is_whole(tmp_path: Path) -> None:
    body = events(piece("hi"), END).replace(b"data: [DONE]\n\n", b"")

    assert (await ask(body, tmp_path, STREAM))["content"][0]["text"] == "hi"


async def test_a_stream_without_its_usage_and_last_event_is_cut_short(tmp_path: Path) -> None:
    body = events(piece("hi"), {**END, "usage": None}).replace(b"data: [DONE]\n\n", b"")

    assert error_of(await ask(body, tmp_path, STREAM))["code"] == "STREAM_INCOMPLETE"


async def test_several_answers_are_not_joined(tmp_path: Path) -> None:
    chunks = [
        {"choices": [{"index": index, "delta": {"content": text}}]}
        for text, index in (("a", 0), ("x", 1), ("b", 0), ("y", 1))
    ]
    choices = [
        {"index": index, "message": {"content": str(index)}, "finish_reason": "stop"} for index in (1, 0)
    ]

    streamed = await ask(events(*chunks, END), tmp_path, STREAM)
    whole = await ask(completion(choices=choices), tmp_path)

    assert (streamed["content"][0]["text"], whole["content"][0]["text"]) == ("ab", "0")
    assert (
        notes_of(streamed) == notes_of(whole) == ["The API sent several answers; only the first one is here."]
    )


@pytest.mark.parametrize("tool", [CHAT, STREAM])
@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"content": "see", "images": [{"image_url": {"url": "data:image/png;base64,AA=="}}]}, "images"),
        ({"content": "see", "audio": {"data": "AA=="}}, "audio"),
        ({"content": [{"type": "text", "text": "see"}, {"type": "image_url"}]}, "images"),
    ],
)
async def test_what_is_no_text_is_named(tmp_path: Path, tool: str, more: dict[str, Any], kind: str) -> None:
    body = message(**more) if tool == CHAT else events(piece(**more), END)

    result = await ask(body, tmp_path, tool)

    assert result["content"][0]["text"] == "see"
    assert notes_of(result) == [f"The answer has {kind}, which this server does not pass on."]


@pytest.mark.parametrize("word", ["tool_use", "STOP"])
async def test_other_words_for_a_whole_answer_are_known(tmp_path: Path, word: str) -> None:
    choice = {"message": {"content": "hi"}, "finish_reason": word}

    assert notes_of(await ask(completion(choices=[choice]), tmp_path)) == []


async def test_other_words_for_the_longest_answer_are_known(tmp_path: Path) -> None:
    choice = {"message": {"content": "hi"}, "finish_reason": "MAX_TOKENS"}

    (note,) = notes_of(await ask(completion(choices=[choice]), tmp_path))

    assert "reached max_tokens" in note


async def test_a_strange_answer_is_refused_before_it_keeps_everybody_waiting(tmp_path: Path) -> None:
    body = json.dumps({"model": 5, "choices": [{}] * 200_000}).encode()

    assert error_of(await ask(body, tmp_path))["code"] == "BAD_RESPONSE"
