"""A folder and the game in step: in both directions, with agents at work, and when things go wrong."""

import asyncio
import time
from pathlib import Path

import pytest

from bridgehead.bitburner import simulator
from bridgehead.bitburner.sync.planning import Rules
from tests.bitburner.playing import PAGE, versions_of
from tests.bitburner.sync.syncing import HOME, synced
from tests.support.game import Game
from tests.support.waiting import until


async def test_both_sides_get_what_the_other_has(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        one.put("mine.js", "// mine\n")
        await one.sync.run_once()

        assert one.files == {**HOME, "mine.js": "// mine\n"}
        assert one.play.game.servers["home"]["mine.js"] == "// mine\n"
        one.events.clear()
        await one.sync.run_once()
        assert one.events == []


async def test_line_ends_of_both_kinds_stay_as_they_are(tmp_path: Path) -> None:
    async with synced(tmp_path, game=Game(3, {"home": {"theirs.js": "a\r\nb\n"}})) as one:
        one.put("mine.js", "c\r\nd\r")
        await one.sync.run_once()

        assert one.files == {"theirs.js": "a\r\nb\n", "mine.js": "c\r\nd\r"}
        assert one.play.game.servers["home"] == one.files


async def test_the_side_that_changed_wins_and_the_other_content_can_be_restored(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        one.put("hack.js", "// better\n")
        one.play.game.servers["home"]["notes.txt"] = "other notes"
        await one.sync.run_once()

        assert one.play.game.servers["home"]["hack.js"] == "// better\n"
        assert one.files["notes.txt"] == "other notes"
        await one.play.ok("restore_file", filename="hack.js")
        assert one.play.game.servers["home"]["hack.js"] == "// hack\n"


async def test_a_conflict_keeps_both_and_is_settled_by_deleting_the_copy(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        one.put("hack.js", "// here\n")
        one.play.game.servers["home"]["hack.js"] = "// there\n"
        await one.sync.run_once()
        await one.sync.run_once()

        assert one.files["hack.js"] == "// here\n"
        assert one.files["hack.from-game.js"] == "// there\n"
        assert one.told("conflict") == ["hack.js"]
        assert "hack.from-game.js" not in one.play.game.servers["home"]
        (one.root / "hack.from-game.js").unlink()
        await one.sync.run_once()
        assert one.play.game.servers["home"]["hack.js"] == "// here\n"
        kept = [version.content for version in versions_of(one.play.session.history, "hack.js")]
        assert "// there\n" in kept


async def test_a_conflict_is_settled_too_by_taking_the_games_content(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        one.put("hack.js", "// here\n")
        one.play.game.servers["home"]["hack.js"] = "// there\n"
        await one.sync.run_once()
        one.put("hack.js", "// there\n")
        await one.sync.run_once()

        assert "hack.from-game.js" not in one.files
        assert one.play.game.servers["home"]["hack.js"] == "// there\n"


async def test_a_delete_is_held_back_unless_asked_for(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        (one.root / "hack.js").unlink()
        del one.play.game.servers["home"]["notes.txt"]
        await one.sync.run_once()

        assert sorted(one.told("held")) == ["hack.js", "notes.txt"]
        assert "hack.js" in one.play.game.servers["home"]
        assert "notes.txt" in one.files
    async with synced(tmp_path, game=one.play.game, rules=Rules(deletes=True)) as one:
        await one.sync.run_once()
        assert "hack.js" not in one.play.game.servers["home"]
        assert "notes.txt" not in one.files
        await one.play.ok("restore_file", filename="hack.js")
        await one.play.ok("restore_file", filename="notes.txt")
        assert one.play.game.servers["home"]["notes.txt"] == "notes"


@pytest.mark.parametrize("agrees", [True, False])
async def test_many_deletes_at_once_are_asked_about_first(tmp_path: Path, *, agrees: bool) -> None:
    files = {f"{number}.txt": "1" for number in range(30)}
    async with synced(tmp_path, game=Game(3, {"home": files}), rules=Rules(deletes=True)) as one:
        one.agrees = agrees
        await one.sync.run_once()
        for number in range(3):
            (one.root / f"{number}.txt").unlink()
        await one.sync.run_once()
        assert one.asked == []  # a tenth of them
        for number in range(10, 14):
            (one.root / f"{number}.txt").unlink()
        await one.sync.run_once()

        assert one.asked == [4]
        assert ("12.txt" in one.play.game.servers["home"]) == (not agrees)
        assert one.told("held") == ([] if agrees else ["10.txt", "11.txt", "12.txt", "13.txt"])


async def test_what_the_player_removed_while_sync_was_off_is_not_sent_again(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        one.put("mine.js", "1")
        await one.sync.run_once()
    game = one.play.game
    del game.servers["home"]["mine.js"]
    async with synced(tmp_path, game=game) as one:
        await until(lambda: len(one.play.session.differences.found) == 1)
        await one.sync.run_once()
        assert one.told("held") == ["mine.js"]
    async with synced(tmp_path, game=game, rules=Rules(deletes=True)) as one:
        await one.sync.run_once()
        assert "mine.js" not in one.files
    assert "mine.js" not in game.servers["home"]


async def test_a_file_that_cannot_be_read_is_not_taken_for_a_deleted_one(tmp_path: Path) -> None:
    async with synced(tmp_path, rules=Rules(deletes=True)) as one:
        await one.sync.run_once()
        (one.root / "notes.txt").write_bytes(b"\xff\xfe")
        await one.sync.run_once()

        assert one.play.game.servers["home"] == HOME


async def test_further_servers_get_a_copy_of_every_file(tmp_path: Path) -> None:
    game = Game(3, {"home": HOME, "pserv-0": {"own.js": "1", "hack.js": "old"}, "pserv-1": {}})
    async with synced(tmp_path, game=game, copies=("pserv-0", "pserv-1")) as one:
        await one.sync.run_once()
        assert game.servers["pserv-1"] == HOME
        assert game.servers["pserv-0"] == {**HOME, "own.js": "1"}
        assert "own.js" not in one.files
        one.put("hack.js", "// newer\n")
        await one.sync.run_once()

        assert {files["hack.js"] for files in game.servers.values()} == {"// newer\n"}
        await one.play.ok("restore_file", filename="hack.js", server="pserv-0")
        assert game.servers["pserv-0"]["hack.js"] == HOME["hack.js"]


async def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        one.put("mine.js", "1")
        plan = await one.sync.plan()

        assert {(action.kind, action.place[1]) for action in plan} == {
            ("push", "mine.js"),
            *(("pull", name) for name in HOME),
        }
        assert one.files == {"mine.js": "1"}
        assert one.play.game.servers["home"] == HOME


@pytest.mark.parametrize("mode", ["pull", "push"])
async def test_one_direction_changes_one_side_only(tmp_path: Path, mode: str) -> None:
    async with synced(tmp_path, rules=Rules(mode)) as one:  # type: ignore[arg-type]
        one.put("mine.js", "1")
        await one.sync.run_once()

        assert (one.files == {**HOME, "mine.js": "1"}) == (mode == "pull")
        assert (one.play.game.servers["home"] == {**HOME, "mine.js": "1"}) == (mode == "push")


async def test_several_servers_lie_in_a_subfolder_each(tmp_path: Path) -> None:
    game = Game(3, {"home": HOME, "n00dles": {"a.js": "1"}})
    async with synced(tmp_path, game=game, servers=("home", "n00dles")) as one:
        one.put("n00dles/b.js", "2")
        one.put("elsewhere/c.js", "3")
        await one.sync.run_once()

        assert one.files["n00dles/a.js"] == "1"
        assert one.files["home/hack.js"] == "// hack\n"
        assert game.servers["n00dles"] == {"a.js": "1", "b.js": "2"}


async def test_an_edit_reaches_the_game_while_it_runs_and_an_agents_write_the_folder(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        running = asyncio.create_task(one.sync.run())
        await asyncio.sleep(0.3)  # the watcher has no sign of its own
        one.put("hack.js", "// edited\n")
        await until(lambda: one.play.game.servers["home"]["hack.js"] == "// edited\n")
        await one.play.ok("write_file", filename="agent.js", content="// agent\n")
        await until(lambda: one.files.get("agent.js") == "// agent\n")
        one.play.game.servers["home"]["notes.txt"] = "by the player"
        await until(lambda: one.files["notes.txt"] == "by the player")
        running.cancel()
        await asyncio.wait({running})


async def test_a_reload_with_an_older_save_gets_everything_again(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        one.put("hack.js", "// newer\n")
        one.put("new.js", "// new\n")
        await one.sync.run_once()
        game = one.play.game
        await game.hang_up()
        await until(lambda: one.play.session.connection.link is None)
        game.servers["home"].clear()
        game.servers["home"].update(HOME)
        assert await game.dial(one.play.url, PAGE)
        await until(lambda: len(one.play.session.differences.found) == 2)
        await one.sync.run_once()

        assert one.files["hack.js"] == game.servers["home"]["hack.js"] == "// newer\n"
        assert game.servers["home"]["new.js"] == "// new\n"


async def test_a_full_disk_is_told_and_made_up_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with synced(tmp_path) as one:
        with monkeypatch.context() as full:

            def refuse(*_: object, **__: object) -> None:
                raise OSError(28, "No space left on device")

            full.setattr(one.folder, "replace", refuse)
            await one.sync.run_once()
            assert sorted(one.told("failed")) == sorted(HOME)
        await one.sync.run_once()

        assert one.files == HOME


async def test_a_write_of_an_agent_in_between_is_never_overwritten(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        one.put("hack.js", "// here\n")
        actions = await one.sync.plan()
        await one.play.ok("write_file", filename="hack.js", content="// agent\n")
        await one.sync.carry_out(actions)

        assert one.play.game.servers["home"]["hack.js"] == "// agent\n"
        await one.sync.run_once()
        assert one.files["hack.from-game.js"] == "// agent\n"


async def test_two_hundred_files_go_each_way_in_a_moment(tmp_path: Path) -> None:
    content = "// line of a script\n" * 150
    there = {f"there/{number}.js": content + str(number) for number in range(200)}
    async with synced(tmp_path, game=Game(3, {"home": there})) as one:
        for number in range(200):
            one.put(f"here/{number}.js", content + str(number))
        began = time.perf_counter()
        await one.sync.run_once()
        seconds = time.perf_counter() - began

        assert len(one.files) == len(one.play.game.servers["home"]) == 400
        assert seconds < 30  # a busy machine; the figure is the benchmark's


async def test_folder_keeps_its_files_when_another_game_connects(tmp_path: Path) -> None:
    async with synced(tmp_path) as one:
        await one.sync.run_once()
        await one.play.game.hang_up()
        await until(lambda: one.play.session.connection.link is None)
        async with simulator.Game(3, {"home": {"hack.js": "// sample\n"}}) as simulated:
            assert await simulated.dial(one.play.url, PAGE)
            await until(lambda: one.play.session.connection.link is not None)
            await one.sync.run_once()

            assert HOME.items() <= one.files.items()
            assert one.files["hack.from-game.js"] == simulated.servers["home"]["hack.js"] == "// sample\n"
