"""Shared changes: an owner of the game and its guests change files as one."""

import asyncio
from pathlib import Path

from bridgehead.bitburner.simulator import Faults, Game
from tests.bitburner.game.sharing.test_relay import pair
from tests.bitburner.playing import FILES, Play


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
