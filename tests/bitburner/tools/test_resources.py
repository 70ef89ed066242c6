"""Files as resources, completions, prompts, and what clients hear of changes."""

from pathlib import Path

import pytest

from tests.bitburner.playing import FILES, Play, bridged, played
from tests.support.game import Game

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
