"""`mercury_fim_completion` and `mercury_edit_completion`, over a real process."""

from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import BridgeProcess, bridge_process
from tests.support import mercury_journal

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIM, EDIT = "mercury_fim_completion", "mercury_edit_completion"
GAP = {"prompt": "def total(items):\n", "suffix": "\n    return total\n"}
CODE = "<|code_to_edit|>a = 1<|/code_to_edit|>"


async def test_a_gap_is_filled(client: BridgeProcess, api: Simulator) -> None:
    given = {**GAP, "model": "mercury-coder-small", "max_tokens": 64, "temperature": 0.6, "stop": ["@@"]}
    result = await client.call(FIM, given)

    (sent,) = api.requests.to("/fim/completions")
    assert sent.body == given
    assert result["content"][0]["text"] == api.text_of(given)
    metadata = result["structuredContent"]["metadata"]
    assert (metadata["model"], metadata["finish_reason"]) == ("mercury-coder-small", "stop")
    assert metadata["usage"]["total_tokens"] > 0


async def test_an_edit_is_made_with_one_user_message(client: BridgeProcess, api: Simulator) -> None:
    given = {
        "model": "mercury-edit-2",
        "max_tokens": 64,
        "temperature": 0.6,
        "top_p": 0.5,
        "presence_penalty": 1,
    }
    result = await client.call(EDIT, {**given, "prompt": CODE})

    (sent,) = api.requests.to("/edit/completions")
    assert sent.body == {**given, "messages": [{"role": "user", "content": CODE}]}
    assert result["structuredContent"]["content"] == api.text_of(sent.body)


async def test_fill_ins_and_edits_can_have_default_models_of_their_own(
    client: BridgeProcess, api: Simulator
) -> None:
    await client.call(FIM, GAP)
    await client.call(EDIT, {"prompt": CODE})

    assert api.requests.to("/fim/completions")[0].body["model"] == "mercury-edit-2"
    assert api.requests.to("/edit/completions")[0].body["model"] == "mercury-edit-2"


async def test_where_the_default_model_can_do_it_it_is_taken(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, MERCURY_MODEL="", MERCURY_FIM_MODEL="") as client:
        await client.call(FIM, GAP)

    assert api.requests.to("/fim/completions")[0].body["model"] == "mercury-coder-small"


async def test_an_older_model_list_that_names_no_endpoints_will_do(tmp_path: Path) -> None:
    settings = {"MERCURY_MODEL": "", "MERCURY_FIM_MODEL": "", "MERCURY_EDIT_MODEL": ""}
    async with (
        Simulator(models=mercury_journal.OLDER) as api,
        bridge_process(api.url, tmp_path, **settings) as client,
    ):
        await client.call(FIM, GAP)
        listed = (await client.call("mercury_list_models"))["structuredContent"]["models"]

        assert api.requests.to("/fim/completions")[0].body["model"] == "mercury-coder-small"
    assert [model["id"] for model in listed] == ["mercury-coder-small", "mercury-coder", "mercury"]


@pytest.mark.parametrize(
    ("tool", "wrong", "where"),
    [
        (FIM, {"prompt": "x"}, "suffix"),
        (FIM, {**GAP, "temperature": 3}, "temperature"),
        (FIM, {**GAP, "max_tokens": 0}, "max_tokens"),
        (FIM, {**GAP, "top_p": 0.5}, "top_p"),
        (FIM, {**GAP, "stop": [1]}, "stop"),
        (EDIT, {}, "prompt"),
        (EDIT, {"prompt": ""}, "prompt"),
        (EDIT, {"prompt": CODE, "stop": []}, "stop"),
    ],
)
async def test_wrong_arguments_are_a_validation_error(
    client: BridgeProcess, tool: str, wrong: dict[str, Any], where: str
) -> None:
    error = await client.error(tool, wrong)

    assert (error["type"], error["code"]) == ("validation_error", "INVALID_ARGUMENTS")
    assert where in error["message"]


@pytest.mark.parametrize(("tool", "arguments"), [(FIM, GAP), (EDIT, {"prompt": CODE})])
async def test_failures_are_tried_again(
    client: BridgeProcess, api: Simulator, tool: str, arguments: dict[str, Any]
) -> None:
    api.faults.next(Fault(status=503), Fault(status=500))

    assert "isError" not in await client.call(tool, arguments)
