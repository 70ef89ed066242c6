"""Differences: a game that forgot or changed what was written is noticed, and one call brings it back."""

from pathlib import Path
from typing import Any

from bridgehead.bitburner import simulator
from tests.bitburner.game.sharing.test_relay import pair
from tests.bitburner.playing import FILES, PAGE, Play, played, versions_of
from tests.support.game import Game
from tests.support.waiting import until


async def reload(play: Play, files: dict[str, str] | None = None) -> None:
    """Let the page be loaded again, with the files of an older save."""
    await play.game.hang_up()
    await until(lambda: play.session.connection.link is None)
    if files is not None:
        play.game.servers["home"].clear()
        play.game.servers["home"].update(files)
    assert await play.game.dial(play.url, PAGE)
    await until(lambda: play.session.connection.link is not None)


async def until_noticed(play: Play, count: int) -> None:
    await until(lambda: len(play.session.differences.found) == count)


async def test_a_game_that_loaded_an_older_save_is_noticed_and_one_call_restores_all(play: Play) -> None:
    before = dict(play.game.servers["home"])
    written = {f"new{number}.js": f"// {number}\n" for number in range(3)}
    for name, content in {**written, "hack.js": "// better\n"}.items():
        await play.ok("write_file", filename=name, content=content)
    await reload(play, before)
    await until_noticed(play, 4)

    _, status = await play.ok("connection_status")
    (note,) = status["notes"]
    assert "older save" in note
    assert "4 files differ" in note
    assert "new0.js, new1.js, new2.js are missing" in note
    assert {one["filename"]: one["state"] for one in status["differences"]} == {
        "new0.js": "missing",
        "new1.js": "missing",
        "new2.js": "missing",
        "hack.js": "older",
    }
    text, restored = await play.ok("restore_file", filenames=[*written, "hack.js"])
    assert text == "Restored 4 of 4 files."
    assert len(restored["restored"]) == 4
    assert play.game.servers["home"] == {**before, **written, "hack.js": "// better\n"}
    assert (await play.ok("connection_status"))[1]["differences"] == []


async def test_a_players_save_over_an_agents_edit_is_noticed_at_the_next_read(play: Play) -> None:
    await play.ok("write_file", filename="hack.js", content="// agent\n")
    play.game.servers["home"]["hack.js"] = "// player\n"

    result = await play.client.call("read_file", {"filename": "hack.js"})
    assert result["content"][0]["text"] == "// player\n"
    assert "hack.js is changed in the game" in result["content"][1]["text"]
    await play.ok("restore_file", filename="hack.js")
    assert play.game.servers["home"]["hack.js"] == "// agent\n"
    await play.ok("restore_file", filename="hack.js", version=await newest_of(play, "// player\n"))
    assert play.game.servers["home"]["hack.js"] == "// player\n"


async def newest_of(play: Play, content: str) -> str:
    versions = versions_of(play.session.history, "hack.js")
    return next(one.name for one in versions if one.content == content)


async def test_it_is_said_once_with_the_next_answer_of_any_tool(play: Play) -> None:
    await play.ok("write_file", filename="new.js", content="// 1\n")
    await reload(play, dict(FILES["home"]))
    await until_noticed(play, 1)

    first = await play.client.call("list_files", {})
    second = await play.client.call("list_files", {})
    assert "new.js is missing" in first["content"][1]["text"]
    assert len(second["content"]) == 1


async def test_another_process_is_told_by_the_owner(tmp_path: Path) -> None:
    async with pair(tmp_path, Game(3, FILES)) as (owner, guest):
        await guest.ok("write_file", filename="new.js", content="// 1\n")
        await reload(owner, dict(FILES["home"]))
        await until_noticed(owner, 1)
        await until(lambda: guest.session.connection.link is not None)

        _, status = await guest.ok("connection_status")
        assert "new.js is missing" in status["notes"][0]
        assert [one["filename"] for one in status["differences"]] == ["new.js"]
        await guest.ok("restore_file", filenames=["new.js"])
        assert owner.game.servers["home"]["new.js"] == "// 1\n"


async def test_what_was_told_is_not_told_again_by_the_next_process(tmp_path: Path) -> None:
    game = Game(3, FILES)
    async with played(tmp_path, game=game) as play:
        await play.ok("write_file", filename="a.txt", content="1")
        await play.ok("write_file", filename="b.txt", content="1")
    del game.servers["home"]["a.txt"]
    async with played(tmp_path, game=game) as play:
        await until_noticed(play, 1)
        assert "a.txt is missing" in (await play.ok("connection_status"))[1]["notes"][0]
    async with played(tmp_path, game=game) as play:
        await play.ok("write_file", filename="b.txt", content="2")
        _, status = await play.ok("connection_status")
        await play.ok("restore_file", filename="a.txt")

    assert status["differences"] == []
    assert "notes" not in status
    assert game.servers["home"]["a.txt"] == "1"


async def test_a_deleted_file_that_is_back_is_noticed(play: Play) -> None:
    content = play.game.servers["home"]["hack.js"]
    await play.ok("delete_file", filename="hack.js")
    await reload(play, {"hack.js": content})
    await until_noticed(play, 1)

    _, status = await play.ok("connection_status")
    assert "hack.js is there again although deleted. delete_file deletes" in status["notes"][0]
    assert "restore_file" not in status["notes"][0] + status["next_step"]


async def test_nothing_is_noticed_where_everything_is_as_it_was_written(play: Play) -> None:
    await play.ok("write_file", filename="a.js", content="// 1\n")
    await play.ok("delete_file", filename="notes.txt")
    await reload(play)
    found: Any = await play.session.differences.check_all(play.session.remote)

    assert found == []
    assert (await play.ok("connection_status"))[1]["differences"] == []


async def test_without_backups_nothing_is_compared(tmp_path: Path) -> None:
    async with played(tmp_path, BITBURNER_BACKUP_DIR="off") as play:
        await play.ok("write_file", filename="a.txt", content="1")
        await reload(play, {})
        assert (await play.ok("connection_status"))[1]["state"] == "connected"


async def test_simulated_game_and_a_real_one_have_pasts_of_their_own(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, {"home": {"early.js": "// mine\n"}})) as play:
        await play.ok("write_file", filename="early.js", content="// real\n")
        await play.game.hang_up()
        await until(lambda: play.session.connection.link is None)
        async with simulator.Game(3, {"home": {"early.js": "// sample\n"}}) as simulated:
            assert await simulated.dial(play.url, PAGE)
            await until(lambda: play.session.connection.link is not None)
            await until(play.session.differences.is_checked.is_set)
            assert (await play.ok("connection_status"))[1]["differences"] == []
            await play.ok("write_file", filename="early.js", content="// simulated\n")
            await play.ok("restore_file", filename="early.js")
            assert simulated.servers["home"]["early.js"] == "// sample\n"
        await until(lambda: play.session.connection.link is None)
    async with played(tmp_path, game=play.game) as play:
        await until(play.session.differences.is_checked.is_set)
        assert (await play.ok("connection_status"))[1]["differences"] == []
        await play.ok("restore_file", filename="early.js")

        assert play.game.servers["home"]["early.js"] == "// mine\n"
