"""The prompts: made of what is in the game now."""

from tests.bitburner.playing import SCRIPT, Play


async def test_every_prompt_is_offered(play: Play) -> None:
    offered = (await play.client.request("prompts/list"))["prompts"]

    assert {prompt["name"] for prompt in offered} == {"write_script", "slim_script"}


async def test_a_script_to_be_slimmed_is_quoted_with_its_cost(play: Play) -> None:
    prompt = {"name": "slim_script", "arguments": {"filename": "hack.js"}}
    (message,) = (await play.client.request("prompts/get", prompt))["messages"]

    assert SCRIPT in message["content"]["text"]
    assert "GB" in message["content"]["text"]


async def test_a_script_that_is_not_there_is_refused(play: Play) -> None:
    prompt = {"name": "slim_script", "arguments": {"filename": "missing.js"}}

    assert (await play.client.error("prompts/get", prompt))["code"] < 0
