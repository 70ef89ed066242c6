"""Files as resources, completions, prompts, and what clients hear of changes."""

import json
from pathlib import Path

import pytest

from bridgehead.bitburner.simulator import Faults, Game
from tests.bitburner.playing import FILES, SCRIPT, Play, bridged, played

TEMPLATE = "bitburner://{server}/{+path}"


async def test_a_file_is_read_by_its_address(play: Play) -> None:
    (content,) = (await play.client.request("resources/read", {"uri": "bitburner://home/lib/tools.js"}))[
        "contents"
    ]

    assert content["text"] == FILES["home"]["lib/tools.js"]
    assert content["mimeType"] == "text/javascript"


async def test_the_files_at_home_are_listed(play: Play) -> None:
    listed = (await play.client.request("resources/list"))["resources"]

    assert {one["uri"] for one in listed} == {f"bitburner://home/{name}" for name in FILES["home"]}


async def test_the_template_is_listed(play: Play) -> None:
    (template,) = (await play.client.request("resources/templates/list"))["resourceTemplates"]

    assert template["uriTemplate"] == TEMPLATE


async def test_a_name_with_strange_letters_survives_its_address(play: Play) -> None:
    play.game.servers["home"]["日本/ü%.txt"] = "x"
    listed = (await play.client.request("resources/list"))["resources"]
    (uri,) = [one["uri"] for one in listed if one["name"] == "日本/ü%.txt"]

    assert (await play.client.request("resources/read", {"uri": uri}))["contents"][0]["text"] == "x"


async def test_without_a_game_the_list_is_empty_and_reading_says_what_to_do(tmp_path: Path) -> None:
    async with bridged(tmp_path) as play:
        assert (await play.client.request("resources/list"))["resources"] == []
        refusal = await play.client.error("resources/read", {"uri": "bitburner://home/a.js"})
        assert await complete(play, "server", "h") == []
        assert await complete(play, "path", "h") == []

    assert "Options → Remote API" in refusal["message"]


@pytest.mark.parametrize(
    "uri", ["bitburner://home/missing.js", "bitburner://home/NUKE.exe", "bitburner://no/a.js"]
)
async def test_a_resource_that_is_not_there_is_refused_as_such(play: Play, uri: str) -> None:
    refusal = await play.client.error("resources/read", {"uri": uri})

    assert refusal["code"] == -32002


async def test_servers_and_paths_are_completed(play: Play) -> None:
    play.game.servers["n00dles"] = {"deep/a.js": "", "deep/b.js": ""}

    assert "n00dles" in await complete(play, "server", "n0")
    assert await complete(play, "path", "deep/", server="n00dles") == ["deep/a.js", "deep/b.js"]
    assert await complete(play, "path", "/ha") == ["hack.js"]
    assert await complete(play, "path", "", server="nowhere") == []


async def test_a_game_that_cannot_list_its_servers_has_home(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(2, FILES, lacking={"getAllServers"})) as play:
        assert await complete(play, "server", "") == ["home"]


async def complete(play: Play, name: str, value: str, **given: str) -> list[str]:
    params = {
        "ref": {"type": "ref/resource", "uri": TEMPLATE},
        "argument": {"name": name, "value": value},
        "context": {"arguments": given},
    }
    values: list[str] = (await play.client.request("completion/complete", params))["completion"]["values"]
    return values


async def test_a_client_hears_of_a_file_it_watches_and_of_new_ones(play: Play) -> None:
    await play.client.request("resources/subscribe", {"uri": "bitburner://home/hack.js"})
    await play.ok("write_file", filename="hack.js", content="1")
    await play.ok("write_file", filename="new.js", content="1")

    (updated,) = await play.client.inbox.of("notifications/resources/updated")
    assert updated["params"]["uri"] == "bitburner://home/hack.js"
    await play.client.inbox.of("notifications/resources/list_changed")


# --- prompts ---


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


# --- status ---


async def test_the_status_tells_generation_origin_and_since_when(play: Play, generation: int) -> None:
    text, status = await play.ok("connection_status")

    assert status["state"] == "connected"
    assert status["generation"] == {2: "2.6 or later", 3: "3.x"}[generation]
    assert status["game"] == "https://bitburner-official.github.io"
    assert status["since"].endswith("Z")
    assert status["next_step"] == "Nothing; go ahead."
    assert "Connected since" in text


async def test_an_older_game_is_told_by_what_it_lacks(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(2, FILES, lacking={"getAllServers"})) as play:
        assert (await play.ok("connection_status"))[1]["generation"] == "2.x before 2.6"


async def test_a_game_that_does_not_answer_has_no_known_generation(tmp_path: Path) -> None:
    game = Game(3, FILES, Faults(silence=1.0))
    async with played(tmp_path, game=game, RPC_TIMEOUT_MS="50") as play:
        assert "did not answer" in (await play.ok("connection_status"))[1]["generation"]


async def test_the_status_says_what_to_do_and_what_is_read_only(tmp_path: Path) -> None:
    async with bridged(tmp_path, BITBURNER_READ_ONLY="1") as play:
        text, status = await play.ok("connection_status")

    assert (status["state"], status["role"], status["read_only"]) == ("waiting", "owner", True)
    assert "No game is connected." in text
    assert "Next: In Bitburner open Options" in text
    assert "Read-only" in text
    assert json.dumps(status)
