"""The prompts: made of what is in the game now."""

from pathlib import Path

import pytest

from tests.bitburner.playing import SCRIPT, Play, played
from tests.support.game import Game


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


async def test_the_slim_prompt_has_a_table_of_the_calls_and_their_cost(play: Play) -> None:
    play.game.servers["home"]["a.js"] = (
        "export async function main(ns) { ns.exec('x', 'y'); const hint = 1; }"
    )
    prompt = await play.client.request(
        "prompts/get", {"name": "slim_script", "arguments": {"filename": "a.js"}}
    )
    text = prompt["messages"][0]["content"]["text"]

    assert "     1.3 GB  ns.exec" in text
    assert "It costs 2.9 GB of RAM." in text


async def prompt(play: Play, name: str, **arguments: str) -> str:
    filled = await play.client.request("prompts/get", {"name": name, "arguments": arguments})
    text: str = filled["messages"][0]["content"]["text"]
    return text


async def test_writing_a_script_brings_the_definitions_that_fit_the_goal(play: Play) -> None:
    text = await prompt(play, "write_script", goal="hack the richest server and weaken it", filename="a.js")

    assert "script a.js" in text
    assert "NS.hack" in text
    assert "NS.weaken" in text


async def test_slimming_a_script_brings_it_its_cost_and_what_it_calls(play: Play) -> None:
    text = await prompt(play, "slim_script", filename="hack.js")

    assert SCRIPT in text
    assert "It costs 1.7 GB" in text
    assert "// NS.hack" in text
    assert len(text) < 40_000


async def test_slimming_a_script_that_cannot_run_says_why(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, {"home": {"bad.js": "export ("}})) as play:
        assert "Its cost is unknown" in await prompt(play, "slim_script", filename="bad.js")


async def test_a_goal_without_known_words_brings_no_definitions(play: Play) -> None:
    assert "Relevant definitions" not in await prompt(play, "write_script", goal="zzz qqqqqqq")


@pytest.mark.parametrize("name", ["notes.txt", "a b.js"])
async def test_a_prompt_refuses_a_name_that_is_no_script(play: Play, name: str) -> None:
    refusal = await play.client.error("prompts/get", {"name": "slim_script", "arguments": {"filename": name}})

    assert "is not a file name" in refusal["message"]


async def test_the_arguments_of_a_prompt_are_completed(play: Play) -> None:
    params = {
        "ref": {"type": "ref/prompt", "name": "slim_script"},
        "argument": {"name": "filename", "value": "lib"},
    }

    assert (await play.client.request("completion/complete", params))["completion"]["values"] == [
        "lib/tools.js"
    ]
