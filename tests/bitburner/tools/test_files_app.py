"""The files app: what its page asks for with and without a game, and that it only looks."""

from pathlib import Path
from typing import Any

import pytest

from bridgehead.mcp import UI_EXTENSION
from tests.bitburner.playing import FILES, GENERATIONS, bridged, played
from tests.support.game import Game

APPS: dict[str, Any] = {"extensions": {UI_EXTENSION: {}}}


async def test_without_a_game_the_page_is_told_at_once_what_to_do(tmp_path: Path) -> None:
    async with bridged(tmp_path, capabilities=APPS) as play:
        _, overview = await play.ok("files_overview")

    assert (overview["state"], overview["servers"]) == ("waiting", [])
    assert "Options → Remote API" in overview["next_step"]


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_the_page_gets_servers_and_files_with_their_sizes(tmp_path: Path, generation: int) -> None:
    async with played(tmp_path, capabilities=APPS, game=Game(generation, FILES)) as play:
        _, overview = await play.ok("files_overview")
        _, listed = await play.ok("files_on_server", server="home")

    assert overview["state"] == "connected"
    assert {"name": "home", "group": "purchased"} in overview["servers"]
    sizes = {one["name"]: one["size"] for one in listed["files"]}
    assert sizes == {name: len(content.encode()) for name, content in FILES["home"].items()}


async def test_costs_come_for_many_files_at_once_and_only_for_scripts(tmp_path: Path) -> None:
    async with played(tmp_path, capabilities=APPS) as play:
        _, costs = await play.ok("files_ram", server="home", filenames=["hack.js", "notes.txt"])
        too_many = [f"f{number}.js" for number in range(51)]
        refused = await play.client.call("files_ram", {"server": "home", "filenames": too_many})

    assert costs["ram_gb"] == {"hack.js": 1.7, "notes.txt": None}
    assert refused["isError"]


async def test_what_changed_since_the_agent_wrote_it_is_marked(tmp_path: Path) -> None:
    async with played(tmp_path, capabilities=APPS) as play:
        await play.ok("write_file", filename="mine.txt", content="as written")
        await play.ok("write_file", filename="gone.txt", content="here")
        play.game.world.servers["home"]["mine.txt"] = "changed by the player"
        del play.game.world.servers["home"]["gone.txt"]
        _, listed = await play.ok("files_on_server", server="home")

    marks = {one["name"]: one.get("differs") for one in listed["files"]}
    assert (marks["mine.txt"], marks["gone.txt"], marks["hack.js"]) == ("changed", "missing", None)


async def test_the_tool_for_the_agent_is_one_sentence(tmp_path: Path) -> None:
    async with played(tmp_path, capabilities=APPS) as play:
        text = await play.client.text("browse_files")

    assert text == "The page shows the files of the game; home has 3."


async def test_the_page_has_no_tool_that_writes(tmp_path: Path) -> None:
    async with bridged(tmp_path, capabilities=APPS, BITBURNER_READ_ONLY="1") as play:
        tools = (await play.client.request("tools/list"))["tools"]

    of_page = [tool for tool in tools if tool["name"].startswith("files_")]
    assert len(of_page) == 3
    assert all(tool["annotations"]["readOnlyHint"] for tool in of_page)
