"""LastSeen: whoever replaces a content that it never saw is told, and so is the one who wrote it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bridgehead.bitburner.changes.last_seen import LastSeen
from tests.bitburner.changes.test_differences import reload, until_noticed
from tests.bitburner.game.sharing.test_relay import pair
from tests.bitburner.playing import FILES, Play, played
from tests.support.game import Game
from tests.support.waiting import PATIENCE


async def notes_of(play: Play, tool: str, **arguments: Any) -> list[str]:
    result = await play.client.call(tool, arguments)
    assert not result.get("isError"), result
    notes: list[str] = result["structuredContent"].get("notes", [])
    for note in notes:
        assert note in result["content"][1]["text"]
    return notes


async def test_an_agent_that_replaces_another_agents_newer_content_is_told_and_so_is_the_other(
    tmp_path: Path,
) -> None:
    async with pair(tmp_path, Game(3, FILES)) as agents:
        # Whichever of the two owns the game.
        for first, second in (agents, agents[::-1]):
            await first.ok("write_file", filename="n.txt", content="0")
            await first.ok("read_file", filename="n.txt")
            await second.ok("read_file", filename="n.txt")
            await second.ok("write_file", filename="n.txt", content="the second's")
            (told,) = await notes_of(first, "write_file", filename="n.txt", content="the first's")

            assert "another agent wrote it (write_file" in told
            version = told.partition("is version ")[2].partition(":")[0]
            (lost,) = await notes_of(second, "list_files")
            assert lost.startswith("Another agent replaced n.txt, which you had written")
            assert version in lost
            assert await notes_of(second, "list_files") == []
            await second.ok("restore_file", filename="n.txt", version=version)
            assert agents[0].game.servers["home"]["n.txt"] == "the second's"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("move_file", {"filename": "notes.txt", "to": "n.txt", "overwrite": True}),
        ("restore_file", {"filename": "n.txt"}),
        ("write_files", {"files": [{"filename": "n.txt", "content": "all"}]}),
        ("delete_file", {"filename": "n.txt"}),
    ],
)
async def test_whichever_tool_replaces_newer_content_both_are_told(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    async with pair(tmp_path, Game(3, FILES)) as agents:
        for first, second in (agents, agents[::-1]):
            agents[0].game.servers["home"]["notes.txt"] = "notes"
            await first.ok("write_file", filename="n.txt", content="0")
            await first.ok("write_file", filename="n.txt", content="1")
            await second.ok("read_file", filename="n.txt")
            await second.ok("write_file", filename="n.txt", content="the second's")
            told = "\n".join(await notes_of(first, tool, **arguments))

            assert "another agent wrote it (write_file" in told
            version = told.partition("is version ")[2].partition(":")[0]
            (lost,) = await notes_of(second, "list_files")
            assert version in lost
            await second.ok("restore_file", filename="n.txt", version=version)
            assert agents[0].game.servers["home"]["n.txt"] == "the second's"


@pytest.mark.parametrize("name", ["n.txt", "notes.txt"])
async def test_nobody_is_told_of_a_move_or_restore_over_what_was_read(tmp_path: Path, name: str) -> None:
    async with pair(tmp_path, Game(3, FILES)) as (first, second):
        await first.ok("write_file", filename="n.txt", content="0")
        await second.ok("write_file", filename="n.txt", content="1")
        await first.ok("list_files")
        await second.ok("list_files")
        await first.ok("read_file", filename="n.txt")
        if name == "n.txt":
            notes = await notes_of(first, "restore_file", filename="n.txt")
        else:
            notes = await notes_of(first, "move_file", filename=name, to="n.txt", overwrite=True)

        assert not [note for note in notes if "did not hold" in note]
        assert await notes_of(second, "list_files") == []


async def test_nobody_is_told_of_a_change_that_was_read_first(tmp_path: Path) -> None:
    async with pair(tmp_path, Game(3, FILES)) as (first, second):
        await first.ok("write_file", filename="n.txt", content="1")
        await second.ok("read_file", filename="n.txt")
        assert await notes_of(second, "write_file", filename="n.txt", content="2") == []
        assert await notes_of(first, "list_files") == []
        await first.ok("edit_file", filename="n.txt", old_text="2", new_text="3")
        assert await notes_of(second, "list_files") == []


async def test_an_agent_that_replaces_a_players_edit_is_told(play: Play) -> None:
    await play.ok("read_file", filename="notes.txt")
    play.game.servers["home"]["notes.txt"] = "the player's"
    (told,) = await notes_of(play, "write_file", filename="notes.txt", content="the agent's")

    assert "it was changed in the game since then" in told
    version = told.partition("is version ")[2].partition(":")[0]
    await play.ok("restore_file", filename="notes.txt", version=version)
    assert play.game.servers["home"]["notes.txt"] == "the player's"


@pytest.mark.parametrize("way", ["get_all_files", "everything", "resource"])
async def test_every_way_of_reading_counts(play: Play, way: str) -> None:
    await play.ok("write_file", filename="notes.txt", content="1")
    play.game.servers["home"]["notes.txt"] = "the player's"
    if way == "resource":
        await play.client.request("resources/read", {"uri": "bitburner://home/notes.txt"})
    else:
        await play.ok("get_all_files", everything=way == "everything")

    assert await notes_of(play, "write_file", filename="notes.txt", content="2") == []


async def test_a_delete_of_newer_content_is_told(play: Play) -> None:
    await play.ok("read_file", filename="notes.txt")
    play.game.servers["home"]["notes.txt"] = "the player's"
    (told,) = await notes_of(play, "delete_file", filename="notes.txt")

    assert "it was changed in the game since then" in told


async def test_an_agent_of_a_new_process_is_told_what_changed_since_the_last_write(tmp_path: Path) -> None:
    game = Game(3, FILES)
    async with played(tmp_path, game=game) as play:
        await play.ok("write_file", filename="notes.txt", content="1")
    game.servers["home"]["notes.txt"] = "the player's"
    async with played(tmp_path, game=game) as play:
        (told, *_) = await notes_of(play, "write_file", filename="notes.txt", content="2")
        assert "it was changed in the game since then" in told
        assert await notes_of(play, "write_file", filename="hack.js", content="// unread\n") != [told]


@pytest.mark.parametrize("tool", ["write_file", "delete_file"])
async def test_with_the_setting_newer_content_is_refused_until_it_was_read(tmp_path: Path, tool: str) -> None:
    arguments = {"filename": "notes.txt", **({"content": "2"} if tool == "write_file" else {})}
    async with played(tmp_path, game=Game(3, FILES), BITBURNER_REFUSE_STALE_WRITES="1") as play:
        await play.ok("write_file", filename="notes.txt", content="1")
        play.game.servers["home"]["notes.txt"] = "the player's"
        text, problem = await play.fails(tool, **arguments)
        assert problem["code"] == "conflict"
        assert "Nothing was changed. Read it, merge, and write again." in text
        assert play.game.servers["home"]["notes.txt"] == "the player's"

        await play.ok("read_file", filename="notes.txt")
        assert (await play.ok(tool, **arguments))[0] == "OK"


async def test_the_setting_refuses_a_move_and_never_a_restore(tmp_path: Path) -> None:
    refusing = {"BITBURNER_REFUSE_STALE_WRITES": "1"}
    async with played(tmp_path, game=Game(3, FILES), **refusing) as play:
        await play.ok("write_file", filename="a.txt", content="1")
        await play.ok("write_file", filename="a.txt", content="2")
        play.game.servers["home"]["a.txt"] = "1"
        move = {"filename": "notes.txt", "to": "a.txt", "overwrite": True}
        assert (await play.fails("move_file", **move))[1]["code"] == "conflict"
        assert play.game.servers["home"]["notes.txt"] == FILES["home"]["notes.txt"]
        await play.ok("restore_file", filename="a.txt")
        assert play.game.servers["home"]["a.txt"] == "2"


async def test_a_guest_is_refused_by_its_own_setting(tmp_path: Path) -> None:
    async with pair(tmp_path, Game(3, FILES), BITBURNER_REFUSE_STALE_WRITES="1") as (owner, guest):
        for agent in (guest, owner):
            await agent.ok("read_file", filename="notes.txt")
        owner.game.servers["home"]["notes.txt"] = "the player's"
        _, problem = await guest.fails("write_file", filename="notes.txt", content="1")
        assert problem["code"] == "conflict"
        await owner.ok("write_file", filename="notes.txt", content="1")


async def test_without_backups_the_note_says_that_nothing_is_kept(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, FILES), BITBURNER_BACKUP_DIR="off") as play:
        await play.ok("read_file", filename="notes.txt")
        play.game.servers["home"]["notes.txt"] = "the player's"
        (told,) = await notes_of(play, "write_file", filename="notes.txt", content="1")

        assert told.endswith("It is not kept, because backups are off.")


async def test_a_write_over_an_older_saves_text_says_how_to_get_back_what_was_lost(play: Play) -> None:
    for content in ("// 1\n", "// 2\n"):
        await play.ok("write_file", filename="a.js", content=content)
    await reload(play, {**FILES["home"], "a.js": "// 1\n"})
    await until_noticed(play, 1)
    notes = await notes_of(play, "write_file", filename="a.js", content="// 3\n")

    (told,) = [note for note in notes if "older save" in note]
    version = told.partition("is version ")[2].partition(":")[0]
    await play.ok("restore_file", filename="a.js", version=version)
    assert play.game.servers["home"]["a.js"] == "// 2\n"


async def reasons(play: Play, filename: str) -> set[str]:
    """Return why the versions of a file were kept."""
    _, listed = await play.ok("restore_file", filename=filename, list_only=True)
    return {version["because"] for version in listed["versions"]}


@pytest.mark.parametrize(("tool", "more"), [("restore_file", {}), ("write_file", {"content": "3"})])
async def test_a_players_edit_of_an_older_saves_text_is_told_when_it_is_replaced(
    play: Play, tool: str, more: dict[str, str]
) -> None:
    for content in ("1", "2"):
        await play.ok("write_file", filename="notes.txt", content=content)
    await reload(play, dict(FILES["home"]))
    await until_noticed(play, 1)
    await play.ok("list_files")
    # What was reported is recorded a moment later, as the game then has it.
    async with asyncio.timeout(PATIENCE):
        while "a change in the game" not in await reasons(play, "notes.txt"):
            await asyncio.sleep(0.01)
    play.game.servers["home"]["notes.txt"] = "the player's"
    told = "\n".join(await notes_of(play, tool, filename="notes.txt", **more))

    assert "it was changed in the game since then. The replaced content is version" in told


def test_notices_are_for_agents_of_this_process_and_bounded() -> None:
    seen, other = LastSeen(), LastSeen()
    agent = f"{seen.process}/a"
    for number in range(50):
        seen.add_notice(agent, str(number))
    seen.add_notice(f"{other.process}/a", "not ours")

    assert seen.take_notices(agent) == [str(number) for number in range(30, 50)]
    assert seen.take_notices(agent) == []
    assert seen.take_notices(f"{other.process}/a") == []
