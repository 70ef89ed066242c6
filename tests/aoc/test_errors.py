"""Errors: the contract's codes for clients of its revision, a readable result for newer ones."""

import json

import pytest

from bridgehead.mcp.revisions import REVISIONS, Revision
from bridgehead.runtime.callers import is_operator
from tests.aoc.data import CONTRACT, Data, locked
from tests.support.checked import connect

RUN = {"day": 1, "phase": 1, "llm_name": "gpt4", "speed_ms": 1250}


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
async def test_a_failure_has_the_contracts_code_for_its_revision_and_is_readable_for_newer_ones(
    data: Data, revision: Revision
) -> None:
    data.put_speeds(1, b"{")
    params = {"name": "record_speed", "arguments": RUN}
    wrong = {"name": "record_speed", "arguments": {**RUN, "phase": 3}}
    async with connect(data.bridge(), revision=revision) as client:
        answers = [await client.answer_to("tools/call", one) for one in (params, wrong)]

    messages = [
        f"{data.speeds_file(1)} is corrupt and was left as it is: ",
        "Invalid params for record_speed: phase must be 1 or 2 (got 3).",
    ]
    for answer, code, message in zip(answers, (-1, -32602), messages, strict=True):
        if revision == CONTRACT:
            assert answer["error"]["code"] == code
            assert answer["error"]["message"].startswith(message)
        else:
            assert answer["result"]["isError"]
            assert answer["result"]["content"][0]["text"].startswith(message)


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
async def test_a_caller_who_does_not_run_the_machine_sees_no_folder_of_it(
    data: Data, revision: Revision
) -> None:
    data.puzzle(1, "Count the gulls.")
    calls = [
        ("fetch_instruction", {"day": 2}),
        ("start_attempt", {"day": 1, "phase": 1, "llm_name": "gpt4"}),
        ("record_speed", RUN),
    ]
    token = is_operator.set(False)
    try:
        async with connect(data.bridge(lock_wait=0.001), revision=revision) as client:
            with locked(data.speeds):
                answers = [
                    await client.answer_to("tools/call", {"name": name, "arguments": arguments})
                    for name, arguments in calls
                ]
            answers.append(await client.answer_to("resources/read", {"uri": "aoc://day02"}))
    finally:
        is_operator.reset(token)

    shown = [json.dumps(answer) for answer in answers]
    for text, said in zip(
        shown, ["Put the puzzle text", "Put it into", "locked", "Put the puzzle text"], strict=True
    ):
        assert said in text
        assert str(data.folder) not in text
