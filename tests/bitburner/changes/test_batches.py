"""Batches: several files are written together or not at all, even if the game or the process is gone."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bridgehead.bitburner.changes import batches
from bridgehead.bitburner.changes.batches import Journal
from bridgehead.bitburner.errors import RemoteFailure
from bridgehead.bitburner.simulator import Exchange, Faults
from tests.bitburner.changes.test_differences import reload
from tests.bitburner.game.sharing.test_relay import pair
from tests.bitburner.playing import PAGE, Play, played, settings
from tests.bitburner.serving import HOST, environment, serving
from tests.support.game import Game
from tests.support.messages import request
from tests.support.ports import free_port
from tests.support.waiting import until

HOME = {"a.txt": "old a", "b.txt": "old b"}
NEW = [{"filename": name, "content": f"new {name}"} for name in ("a.txt", "b.txt", "c.txt")]
WRITTEN = {one["filename"]: one["content"] for one in NEW}


def home() -> dict[str, dict[str, str]]:
    return {"home": dict(HOME)}


def unfinished(state: Path) -> int:
    return len(Journal(settings(state)).load())


async def test_several_files_are_written_and_each_can_be_undone(play: Play) -> None:
    play.game.servers["home"] |= HOME
    text, written = await play.ok("write_files", files=[*NEW, {"filename": "x.js", "content": "// 1\n"}])

    assert text == "OK. Wrote 4 files."
    assert [one["filename"] for one in written["files"]] == ["a.txt", "b.txt", "c.txt", "x.js"]
    assert written["notes"] == ["x.js: It costs 1.6 GB of RAM."]
    assert WRITTEN.items() <= play.game.servers["home"].items()
    await play.ok("restore_file", filenames=["a.txt", "b.txt"])
    assert HOME.items() <= play.game.servers["home"].items()


async def test_everything_is_checked_before_the_first_file_is_written(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, home()), FILE_WRITE_MAX_BYTES="100") as play:
        for bad, words in (
            ({"filename": "x.exe", "content": ""}, "x.exe"),
            ({"filename": "x.txt", "content": "x" * 101}, "The content of x.txt has 101 bytes"),
            ({"filename": "/a.txt", "content": "1"}, "a.txt is given twice"),
        ):
            text, problem = await play.fails("write_files", files=[*NEW, bad])
            assert problem["code"] == "invalid_argument"
            assert words in text
        _, problem = await play.fails("write_files", files=NEW, server="nowhere")
        assert problem["code"] == "remote_error"

        assert play.game.servers["home"] == HOME
        assert play.asked("pushFile") == []


async def test_newer_content_is_refused_for_all_if_the_setting_says_so(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, home()), BITBURNER_REFUSE_STALE_WRITES="1") as play:
        await play.ok("read_file", filename="b.txt")
        play.game.servers["home"]["b.txt"] = "the player's"
        _, problem = await play.fails("write_files", files=NEW)

        assert problem["code"] == "conflict"
        assert play.game.servers["home"] == {**HOME, "b.txt": "the player's"}


def refuse(play: Play, refused: str) -> None:
    """Let the game refuse to take one file."""
    push = play.session.remote.push

    async def choosy(filename: str, content: str, server: str) -> None:
        if filename == refused:
            raise RemoteFailure("pushFile", "Invalid file path", next_step="Choose another name.")
        await push(filename, content, server)

    play.session.remote.push = choosy  # type: ignore[method-assign]


async def test_a_kind_of_file_that_the_game_does_not_know_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    async with played(tmp_path, game=Game(2, home())) as play:
        text, _ = await play.fails("write_files", files=[*NEW, {"filename": "d.css", "content": "1"}])

        assert "Nothing was changed." in text
        assert play.asked("pushFile") == []


async def test_a_file_that_the_game_refuses_takes_the_others_back(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(2, home())) as play:
        refuse(play, "d.txt")
        text, problem = await play.fails("write_files", files=[*NEW, {"filename": "d.txt", "content": "1"}])

        assert problem["code"] == "remote_error"
        assert "d.txt could not be written, so all files hold what they held before." in text
        assert "Nothing was changed" not in text
        assert len(play.asked("pushFile")) > 1
        assert play.game.servers["home"] == HOME
        assert unfinished(tmp_path) == 0


def fall_silent_at_the_second_file(play: Play) -> None:
    push, count = play.session.remote.push, 0

    async def counted(filename: str, content: str, server: str) -> None:
        nonlocal count
        count += 1
        if count == 2:
            play.game.faults = Faults(silence=1.0)
        await push(filename, content, server)

    play.session.remote.push = counted  # type: ignore[method-assign]


async def break_in_the_middle(play: Play) -> tuple[str, Any]:
    """Let the game write one file, be silent on the second, and go."""
    fall_silent_at_the_second_file(play)
    before = len(play.asked("pushFile"))
    call = asyncio.ensure_future(play.fails("write_files", files=NEW))
    await until(lambda: len(play.asked("pushFile")) == before + 2)
    await play.game.hang_up()
    answer: tuple[str, Any] = await call
    return answer


async def test_a_game_that_goes_in_the_middle_is_put_right_when_it_is_back(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, home())) as play:
        text, problem = await break_in_the_middle(play)
        assert problem["code"] == "disconnected"
        assert (
            "The files: a.txt written, b.txt not known, c.txt not written. What was written is taken" in text
        )
        assert play.game.servers["home"]["a.txt"] == "new a.txt"
        assert unfinished(tmp_path) == 1

        play.game.faults = Faults()
        assert await play.game.dial(play.url, PAGE)
        await until(lambda: play.session._notices)  # noqa: SLF001 - told after the journal's file is gone
        assert unfinished(tmp_path) == 0
        assert play.game.servers["home"] == HOME
        _, listed = await play.ok("list_files")
        assert listed["notes"] == [
            "A write_files was interrupted and has been taken back: a.txt, b.txt as before."
        ]


async def test_the_next_process_takes_back_what_a_killed_one_left(tmp_path: Path) -> None:
    state, port = tmp_path / "state", free_port()
    listen = {"BITBURNER_LISTEN": f"{HOST}:{port}"}

    pushed: list[str] = []

    def fall_silent(exchange: Exchange) -> None:
        if exchange.request["method"] == "pushFile":
            pushed.append(exchange.request["params"]["filename"])
            game.faults = Faults(silence=1.0)  # from the next request on

    game = Game(3, home(), watcher=fall_silent)
    with serving(tmp_path / "stderr", environment(state, port)) as bridge:
        async with game:
            await bridge.status()  # the port is open
            assert await game.dial(f"ws://{HOST}:{port}", PAGE)
            bridge.peer.send(request("tools/call", {"name": "write_files", "arguments": {"files": NEW}}))
            await until(lambda: len(pushed) == 2)
            bridge.peer.process.kill()
            await asyncio.to_thread(bridge.peer.exit_code)

    assert game.servers["home"]["a.txt"] == "new a.txt"  # half of it was written
    assert len(Journal(settings(state, **listen)).load()) == 1
    again = Game(3, {"home": game.servers["home"]})
    async with played(state, game=again, **listen) as play:
        await until(lambda: play.session._notices)  # noqa: SLF001 - told after the journal's file is gone
    assert Journal(settings(state, **listen)).load() == []
    assert again.servers["home"] == HOME


async def test_what_someone_else_wrote_meanwhile_is_left_alone(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, home())) as play:
        await break_in_the_middle(play)
        play.game.faults = Faults()
        play.game.servers["home"]["a.txt"] = "the player's"
        assert await play.game.dial(play.url, PAGE)
        await until(lambda: unfinished(tmp_path) == 0)

        assert play.game.servers["home"] == {**HOME, "a.txt": "the player's"}


async def test_game_that_lost_half_a_batch_is_not_said_to_have_lost_anything(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, home())) as play:
        await play.ok("write_file", filename="a.txt", content="first a")
        await break_in_the_middle(play)
        play.game.faults = Faults()
        await reload(play, {**HOME, "a.txt": "first a"})
        await until(lambda: unfinished(tmp_path) == 0 and play.session.differences.is_checked.is_set())

        _, status = await play.ok("connection_status")
        assert status["differences"] == []
        assert status["next_step"] == "Nothing; go ahead."
    async with played(tmp_path, game=play.game) as play:
        await until(play.session.differences.is_checked.is_set)
        assert (await play.ok("connection_status"))[1]["differences"] == []


async def test_what_a_batch_replaced_is_still_missed_if_the_game_lost_that_too(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, home())) as play:
        await play.ok("write_file", filename="a.txt", content="first a")
        await break_in_the_middle(play)
        play.game.faults = Faults()
        await reload(play, HOME)
        await until(lambda: unfinished(tmp_path) == 0 and play.session.differences.is_checked.is_set())

        _, status = await play.ok("connection_status")
        assert [one["filename"] for one in status["differences"]] == ["a.txt"]
        await play.ok("restore_file", filename="a.txt")
        assert play.game.servers["home"] == {**HOME, "a.txt": "first a"}


async def test_a_write_of_another_game_is_not_taken_back_in_this_one(tmp_path: Path) -> None:
    game = Game(3, home())
    async with played(tmp_path, game=game) as play:
        await break_in_the_middle(play)
    game.faults = Faults()
    async with played(tmp_path, game=game, BITBURNER_LISTEN="localhost:0") as play:
        await play.ok("connection_status")
        await reload(play)
        await play.ok("write_file", filename="x.txt", content="1")

    assert game.servers["home"]["a.txt"] == "new a.txt"
    assert unfinished(tmp_path) == 1


async def test_a_game_that_is_only_slow_is_put_right_without_a_new_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_RETRY_SECONDS", 0.01)
    async with played(tmp_path, game=Game(3, home()), RPC_TIMEOUT_MS="100") as play:
        fall_silent_at_the_second_file(play)
        _, problem = await play.fails("write_files", files=NEW)
        assert problem["code"] == "timeout"
        assert unfinished(tmp_path) == 1
        play.game.faults = Faults()
        await until(lambda: unfinished(tmp_path) == 0)

        assert play.game.servers["home"] == HOME


async def test_a_guests_files_are_written_by_the_owner(tmp_path: Path) -> None:
    async with pair(tmp_path, Game(2, home())) as (owner, guest):
        text, _ = await guest.ok("write_files", files=NEW)
        assert text == "OK. Wrote 3 files."
        assert owner.game.servers["home"] == WRITTEN
        refuse(owner, "d.txt")
        refused = [{"filename": "a.txt", "content": "1"}, {"filename": "d.txt", "content": "1"}]
        text, _ = await guest.fails("write_files", files=refused)
        assert "all files hold what they held before" in text
        assert owner.game.servers["home"] == WRITTEN
