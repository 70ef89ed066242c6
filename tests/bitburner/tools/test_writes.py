"""Writing, editing, deleting and restoring: nothing is lost, and every answer says what happened."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from bridgehead.bitburner.simulator import Faults
from bridgehead.mcp.revisions import V2025_06_18, V2026_07_28
from tests.bitburner.playing import FILES, SCRIPT, Play, bridged, played
from tests.support.asking import Person, solve
from tests.support.game import Game
from tests.support.waiting import until

ASKABLE: dict[str, Any] = {"elicitation": {}}


async def test_a_write_answers_ok_and_the_ram_cost_of_a_script(play: Play) -> None:
    text, written = await play.ok("write_file", filename="new.js", content=SCRIPT)

    assert text == "OK"
    assert written["notes"] == [f"It costs {written['ram_gb']:g} GB of RAM."]
    assert play.game.servers["home"]["new.js"] == SCRIPT
    assert written["result"] == "OK"
    assert written["ram_gb"] == float((await play.ok("calculate_ram", filename="new.js"))[0])
    assert (written["bytes"], written["kept_version"]) == (len(SCRIPT), None)


async def test_a_text_has_no_ram_cost(play: Play) -> None:
    _, written = await play.ok("write_file", filename="a.txt", content="hé")

    assert (written["ram_gb"], written["ram_problem"], written["bytes"]) == (None, None, 3)
    assert play.asked("calculateRam") == []


async def test_a_script_that_cannot_run_is_written_and_the_problem_told(play: Play) -> None:
    text, written = await play.ok(
        "write_file", filename="bad.js", content="export async function main(ns) { ("
    )

    assert text == "OK"
    assert written["ram_problem"] in written["notes"]
    assert written["ram_gb"] is None
    assert "Syntax error in bad.js" in written["ram_problem"]


async def test_the_size_is_counted_in_utf_8_bytes_before_any_call(tmp_path: Path) -> None:
    async with played(tmp_path, FILE_WRITE_MAX_BYTES="10") as play:
        await play.ok("write_file", filename="a.txt", content="é" * 5)
        calls = len(play.game.requests)
        text, problem = await play.fails("write_file", filename="a.txt", content="é" * 5 + "x")

    assert problem["code"] == "invalid_argument"
    assert "11 bytes" in text
    assert "FILE_WRITE_MAX_BYTES" in text
    assert len(play.game.requests) == calls


async def test_a_write_that_changes_nothing_keeps_nothing(play: Play) -> None:
    _, written = await play.ok("write_file", filename="hack.js", content=SCRIPT)

    assert written["kept_version"] is None


async def test_a_delete_keeps_the_content(play: Play) -> None:
    text, deleted = await play.ok("delete_file", filename="hack.js")

    assert text == deleted["result"] == "OK"
    assert "hack.js" not in play.game.servers["home"]
    await play.ok("restore_file", filename="hack.js", version=deleted["kept_version"])
    assert play.game.servers["home"]["hack.js"] == SCRIPT


async def test_deleting_what_is_not_there_is_the_games_error(play: Play) -> None:
    text, problem = await play.fails("delete_file", filename="missing.js")

    assert problem["code"] == "not_found"
    assert "Nothing was changed." in text


async def test_a_running_script_is_not_deleted(play: Play) -> None:
    play.game.world.running.add(("home", "hack.js"))

    _, problem = await play.fails("delete_file", filename="hack.js")

    assert "running" in problem["remote_message"]
    assert "stop the script" in problem["next_step"]


async def test_a_program_can_never_be_deleted(play: Play) -> None:
    await play.fails("delete_file", filename="NUKE.exe")

    assert play.asked("deleteFile") == []


# --- asking first ---


async def test_the_user_is_asked_before_a_delete(tmp_path: Path) -> None:
    person = Person(elicitation_create={"action": "accept", "content": {}})
    async with played(tmp_path, capabilities=ASKABLE, answering=person, game=Game(3, FILES)) as play:
        await play.ok("delete_file", filename="hack.js")

    ((_, question),) = person.asked
    assert question["message"] == "Delete hack.js on home? Its content is kept and can be restored."


@pytest.mark.parametrize(("action", "code"), [("decline", "declined"), ("cancel", "not_confirmed")])
async def test_a_user_who_does_not_agree_keeps_the_file(tmp_path: Path, action: str, code: str) -> None:
    person = Person(elicitation_create={"action": action})
    async with played(tmp_path, capabilities=ASKABLE, answering=person, game=Game(3, FILES)) as play:
        text, problem = await play.fails("delete_file", filename="hack.js")

        assert problem["code"] == code
        assert "Nothing was changed." in text
        # Nobody there is not the same as no: an agent that runs alone is told what would let it go on.
        assert ("BITBURNER_CONFIRM_DELETE=0. Its content is kept" in text) == (action == "cancel")
        assert "hack.js" in play.game.servers["home"]


async def test_the_user_is_asked_in_the_stateless_era_too(tmp_path: Path) -> None:
    person = Person(elicitation_create={"action": "accept", "content": {}})
    async with played(tmp_path, revision=V2026_07_28, capabilities=ASKABLE, game=Game(3, FILES)) as play:
        call = {"name": "delete_file", "arguments": {"filename": "hack.js"}}
        result = await solve(play.client, "tools/call", call, person)

        assert result["content"][0]["text"] == "OK"
        assert len(person.asked) == 1
        assert "hack.js" not in play.game.servers["home"]


async def test_nobody_is_asked_where_that_is_switched_off(tmp_path: Path) -> None:
    person = Person()
    async with played(
        tmp_path,
        capabilities=ASKABLE,
        answering=person,
        revision=V2025_06_18,
        game=Game(3, FILES),
        BITBURNER_CONFIRM_DELETE="0",
    ) as play:
        await play.ok("delete_file", filename="hack.js")

    assert person.asked == []


# --- if_match ---


@pytest.mark.parametrize("of", [lambda text: text, lambda text: hashlib.sha256(text.encode()).hexdigest()])
async def test_a_write_can_require_what_it_replaces(play: Play, of: Any) -> None:
    await play.ok("write_file", filename="hack.js", content="2", if_match=of(SCRIPT))
    text, problem = await play.fails("write_file", filename="hack.js", content="3", if_match=of(SCRIPT))

    assert problem["code"] == "conflict"
    assert "Nothing was changed." in text
    assert play.game.servers["home"]["hack.js"] == "2"


async def test_an_empty_if_match_means_that_there_must_be_nothing(play: Play) -> None:
    await play.ok("write_file", filename="fresh.js", content="1", if_match="")

    assert (await play.fails("write_file", filename="fresh.js", content="2", if_match=""))[1][
        "code"
    ] == "conflict"


async def test_if_match_works_without_backups(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(2, FILES), BITBURNER_BACKUP_DIR="off") as play:
        await play.ok("write_file", filename="hack.js", content="2", if_match=SCRIPT)
        assert (await play.fails("write_file", filename="hack.js", content="3", if_match=SCRIPT))[1][
            "code"
        ] == "conflict"


# --- edits ---


async def test_an_exact_text_is_replaced(play: Play) -> None:
    text, written = await play.ok("edit_file", filename="notes.txt", old_text="two", new_text="2")

    assert play.game.servers["home"]["notes.txt"] == "one\n2\nthree"
    assert "Replaced 1" in text
    assert written["kept_version"]


async def test_an_edit_is_refused_unless_the_count_is_right(play: Play) -> None:
    none, _ = await play.fails("edit_file", filename="notes.txt", old_text="four", new_text="4")
    several, problem = await play.fails("edit_file", filename="notes.txt", old_text="e", new_text="E")

    assert "occurs 0 times" in none
    assert "occurs 3 times" in several
    assert "on lines 1, 3, 3" in several
    assert problem["code"] == "invalid_argument"
    assert play.asked("pushFile") == []


async def test_an_edit_replaces_all_when_the_count_says_so(play: Play) -> None:
    await play.ok("edit_file", filename="notes.txt", old_text="e", new_text="E", count=3)

    assert play.game.servers["home"]["notes.txt"] == "onE\ntwo\nthrEE"


async def test_an_edit_of_a_file_that_is_not_there_is_refused(play: Play) -> None:
    _, problem = await play.fails("edit_file", filename="missing.txt", old_text="a", new_text="b")

    assert problem["code"] == "not_found"


async def test_an_edit_cannot_make_a_file_too_large(tmp_path: Path) -> None:
    async with played(tmp_path, FILE_WRITE_MAX_BYTES="20") as play:
        text, _ = await play.fails("edit_file", filename="notes.txt", old_text="two", new_text="2" * 20)

    assert "at most 20" in text


async def test_edits_of_one_file_at_once_do_not_lose_each_other(play: Play) -> None:
    import asyncio

    play.game.servers["home"]["n.txt"] = " ".join(f"<{number}>" for number in range(20))
    await asyncio.gather(
        *(
            play.ok("edit_file", filename="n.txt", old_text=f"<{number}>", new_text=str(number))
            for number in range(20)
        )
    )

    assert play.game.servers["home"]["n.txt"] == " ".join(map(str, range(20)))


# --- nothing is lost ---


async def test_a_write_is_refused_where_the_previous_content_cannot_be_kept(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    async with played(tmp_path, game=Game(2, FILES), BITBURNER_BACKUP_DIR=str(blocked / "x")) as play:
        for tool, arguments in (("write_file", {"content": "new"}), ("delete_file", {})):
            text, problem = await play.fails(tool, filename="hack.js", **arguments)
            assert problem["code"] == "backup_failed"
            assert "left as it is" in text
        assert play.game.servers["home"]["hack.js"] == SCRIPT
        text, written = await play.ok("write_file", filename="new.js", content="1")
        assert text == "OK"
        assert "could not be kept on this machine" in written["notes"][-1]


async def test_a_content_larger_than_all_backups_is_not_overwritten(tmp_path: Path) -> None:
    async with played(tmp_path) as play:
        play.session.history.max_bytes = 100
        play.game.servers["home"]["big.txt"] = "x" * 200
        text, _ = await play.fails("write_file", filename="big.txt", content="")

    assert "all backups may take 100" in text


async def test_without_backups_a_write_is_one_exchange(tmp_path: Path) -> None:
    async with played(tmp_path, BITBURNER_BACKUP_DIR="off") as play:
        # A game that has just connected is compared first, which reads what was written meanwhile.
        await until(lambda: not play.session._background)  # noqa: SLF001
        await play.ok("write_file", filename="a.txt", content="1")
        await play.ok("delete_file", filename="notes.txt")
        asked = [request["method"] for request in play.game.requests]
        text, _ = await play.fails("restore_file", filename="a.txt")

    assert asked == ["pushFile", "deleteFile"]
    assert "Backups are off" in text


async def test_a_write_whose_reading_fails_changes_nothing(tmp_path: Path) -> None:
    game = Game(3, FILES, Faults(silence=1.0, only=frozenset({"getFile"})))
    async with played(tmp_path, game=game, RPC_TIMEOUT_MS="50") as play:
        text, problem = await play.fails("write_file", filename="hack.js", content="new")

    assert problem["code"] == "timeout"
    assert "getFile" in text
    assert "Nothing was changed." in text
    assert play.asked("pushFile") == []


async def test_a_write_whose_answer_is_lost_says_that_it_may_have_happened(tmp_path: Path) -> None:
    game = Game(3, FILES, Faults(silence=1.0, only=frozenset({"pushFile"})))
    async with played(tmp_path, game=game, RPC_TIMEOUT_MS="2000") as play:
        text, problem = await play.fails("write_file", filename="hack.js", content="new")

    assert (problem["code"], problem["transient"]) == ("timeout", True)
    assert "pushFile" in text
    assert "not known whether" in text


async def test_a_server_that_is_not_there_stops_a_write_before_it_is_made(play: Play) -> None:
    _, problem = await play.fails("write_file", filename="a.js", content="", server="nope")

    assert problem["code"] == "remote_error"
    assert play.asked("pushFile") == []


async def test_read_only_offers_no_tool_that_writes(tmp_path: Path) -> None:
    async with bridged(tmp_path, BITBURNER_READ_ONLY="1") as play:
        listed = (await play.client.request("tools/list"))["tools"]
        refusal = await play.client.error("tools/call", {"name": "write_file", "arguments": {}})

    names = {tool["name"] for tool in listed}
    assert names.isdisjoint({"write_file", "edit_file", "delete_file", "restore_file", "backup_save"})
    assert "read_file" in names
    assert all(tool["annotations"]["readOnlyHint"] for tool in listed)
    assert refusal["message"] == "Unknown tool: write_file. BITBURNER_READ_ONLY hides it."


async def test_a_write_whose_answer_cannot_be_read_may_have_happened(tmp_path: Path) -> None:
    game = Game(3, FILES, Faults(nonsense=1.0, only=frozenset({"pushFile"})))
    async with played(tmp_path, game=game) as play:
        text, problem = await play.fails("write_file", filename="hack.js", content="new")

    assert problem["code"] == "odd_reply"
    assert "not known whether" in text
