"""Changes: compared, kept and pushed in one place, whichever process asks for them."""

import asyncio
from pathlib import Path

from bridgehead.bitburner.simulator import Faults, Game
from tests.bitburner.game.sharing.test_relay import pair
from tests.bitburner.playing import FILES, Play, played


async def test_edits_of_an_owner_and_a_guest_at_once_do_not_lose_each_other(tmp_path: Path) -> None:
    game = Game(3, {"home": {"n.txt": " ".join(f"<{number}>" for number in range(40))}})
    async with pair(tmp_path, game) as (owner, guest):
        sides = (owner, guest)
        await asyncio.gather(
            *(
                sides[number % 2].ok(
                    "edit_file", filename="n.txt", old_text=f"<{number}>", new_text=str(number)
                )
                for number in range(40)
            )
        )

    assert game.servers["home"]["n.txt"] == " ".join(map(str, range(40)))


async def test_an_if_match_of_two_processes_lets_one_of_them_through(tmp_path: Path) -> None:
    game = Game(3, {"home": {"n.txt": "0"}})
    successes = 0

    async def count_up(side: Play) -> None:
        nonlocal successes
        for _ in range(15):
            seen = game.servers["home"]["n.txt"]
            arguments = {"filename": "n.txt", "content": str(int(seen) + 1), "if_match": seen}
            result = await side.client.call("write_file", arguments)
            successes += not result.get("isError")

    async with pair(tmp_path, game) as (owner, guest):
        await asyncio.gather(count_up(owner), count_up(guest))

    assert int(game.servers["home"]["n.txt"]) == successes


async def test_every_content_of_two_processes_is_current_or_kept(tmp_path: Path) -> None:
    game = Game(3, FILES)
    async with pair(tmp_path, game) as (owner, guest):
        contents = [f"{number}" * 30 for number in range(30)]
        await asyncio.gather(
            *(
                (owner, guest)[number % 2].ok("write_file", filename="n.txt", content=content)
                for number, content in enumerate(contents)
            )
        )
        kept = {one.content for one in owner.session.history.list_versions("home", "n.txt")}

    assert kept >= set(contents)


async def test_a_guests_failures_are_those_of_the_owner(tmp_path: Path) -> None:
    async with pair(tmp_path, Game(3, FILES)) as (owner, guest):
        for tool, arguments in (
            ("write_file", {"filename": "hack.js", "content": "1", "if_match": "other"}),
            ("edit_file", {"filename": "notes.txt", "old_text": "four", "new_text": "4"}),
            ("edit_file", {"filename": "missing.txt", "old_text": "four", "new_text": "4"}),
            ("delete_file", {"filename": "missing.js"}),
            ("restore_file", {"filename": "hack.js"}),
            ("write_file", {"filename": "a.js", "content": "1", "server": "nope"}),
        ):
            assert await guest.fails(tool, **arguments) == await owner.fails(tool, **arguments)


async def test_a_guest_whose_answer_is_lost_hears_that_the_change_may_have_been_made(tmp_path: Path) -> None:
    game = Game(3, FILES, Faults(silence=1.0, only=frozenset({"pushFile"})))
    async with pair(tmp_path, game) as (owner, guest):
        call = asyncio.ensure_future(guest.fails("write_file", filename="a.txt", content="1"))
        while not owner.asked("pushFile"):
            await asyncio.sleep(0.01)
        for socket in tuple(owner.session.relay._guests):  # noqa: SLF001 - the owner goes in the middle
            await socket._socket.close()  # noqa: SLF001
        text, problem = await call

    assert problem["code"] == "disconnected"
    assert "not known whether" in text


async def test_a_write_that_the_game_refuses_is_no_version(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(2, FILES)) as play:
        await play.fails("write_file", filename="a.css", content="1")

        assert play.session.history.list_versions("home", "a.css") == []


async def test_a_file_is_moved_without_its_content_passing_by(play: Play) -> None:
    content = play.game.servers["home"]["hack.js"]
    text, moved = await play.ok("move_file", filename="hack.js", to="old/hack.js")

    assert text.startswith("OK. hack.js is now old/hack.js.")
    assert play.game.servers["home"]["old/hack.js"] == content
    assert "hack.js" not in play.game.servers["home"]
    await play.ok("restore_file", filename="hack.js", version=moved["kept_version"])
    assert play.game.servers["home"]["hack.js"] == content


async def test_a_move_does_not_overwrite_unless_told_to(play: Play) -> None:
    before = dict(play.game.servers["home"])
    text, problem = await play.fails("move_file", filename="hack.js", to="notes.txt")
    assert problem["code"] == "conflict"
    assert "Nothing was changed." in text
    assert play.game.servers["home"] == before
    await play.ok("move_file", filename="hack.js", to="notes.txt", overwrite=True)
    await play.ok("restore_file", filename="notes.txt")

    assert play.game.servers["home"]["notes.txt"] == before["notes.txt"]


async def test_a_move_of_a_running_script_leaves_both_and_says_so(play: Play) -> None:
    play.game.world.running.add(("home", "hack.js"))
    text, _ = await play.fails("move_file", filename="hack.js", to="new.js")

    assert "new.js was written, and hack.js is still there too" in text
    assert "Nothing was changed" not in text
    assert {"hack.js", "new.js"} <= set(play.game.servers["home"])


async def test_a_missing_file_and_a_move_onto_itself_are_refused(play: Play) -> None:
    assert (await play.fails("move_file", filename="no.js", to="new.js"))[1]["code"] == "not_found"
    text, _ = await play.fails("move_file", filename="hack.js", to="./hack.js")
    assert "The two names are the same" in text


async def test_a_write_asks_for_one_file_and_not_for_the_list(play: Play) -> None:
    await play.ok("write_file", filename="hack.js", content="1")
    await play.ok("write_file", filename="brand/new.js", content="1")

    assert play.asked("getFileNames") == []
    assert len(play.asked("getFile")) == 2
