"""`restore_file`: lists, compares and brings back what is kept."""

from pathlib import Path

from tests.bitburner.playing import SCRIPT, Play, played
from tests.support.game import Game


async def test_versions_are_listed_newest_first(play: Play) -> None:
    for content in ("1", "2"):
        await play.ok("write_file", filename="new.js", content=content)
    _, found = await play.ok("restore_file", filename="new.js", list_only=True)

    assert [(one["because"], one["kind"]) for one in found["versions"]] == [("write_file", "written")] * 2
    assert [one["kept_at"] for one in found["versions"]] == sorted(
        (one["kept_at"] for one in found["versions"]), reverse=True
    )


async def test_a_comparison_changes_nothing(play: Play) -> None:
    for content in ("one\n", "two\n"):
        await play.ok("write_file", filename="new.txt", content=content)
    _, found = await play.ok("restore_file", filename="new.txt", diff=True)

    assert "-two" in found["diff"]
    assert "+one" in found["diff"]
    assert play.game.servers["home"]["new.txt"] == "two\n"


async def test_a_comparison_counts_the_lines_that_an_editor_counts(play: Play) -> None:
    for content in ("one\u2028more\nlast\n", "two\u2028more\nlast\n"):
        await play.ok("write_file", filename="odd.txt", content=content)
    _, found = await play.ok("restore_file", filename="odd.txt", diff=True)

    assert "@@ -1,2 +1,2 @@\n-two\u2028more\n+one\u2028more\n last\n" in found["diff"]


async def test_several_files_come_back_at_once_and_the_others_are_named(play: Play) -> None:
    before = dict(play.game.servers["home"])
    for filename in ("hack.js", "notes.txt"):
        await play.ok("write_file", filename=filename, content="lost")
    _, found = await play.ok("restore_file", filenames=["hack.js", "notes.txt", "never.js"])

    assert sorted(found["restored"]) == ["hack.js", "notes.txt"]
    assert [one["filename"] for one in found["failed"]] == ["never.js"]
    assert play.game.servers["home"] == before


async def test_restoring_several_files_tells_which_versions_were_dropped(tmp_path: Path) -> None:
    files = {"home": {"a.txt": "the player's", "b.txt": "the player's"}}
    async with played(tmp_path, game=Game(3, files), BITBURNER_BACKUP_MAX_FILES="2") as play:
        for filename in files["home"]:
            await play.ok("write_file", filename=filename, content="the agent's")
        _, found = await play.ok("restore_file", filenames=[*files["home"]])

        _, status = await play.ok("connection_status")

    assert found["restored"] == ["a.txt", "b.txt"]
    # The first write that dropped some said so; from then on, the status does.
    assert found["notes"] == [] or found["notes"][0].startswith("To make room, the oldest kept versions")
    assert "of the oldest were dropped" in status["notes"][-1]


async def test_what_is_overwritten_can_be_restored(play: Play) -> None:
    await play.ok("write_file", filename="hack.js", content="// other\n")
    text, restored = await play.ok("restore_file", filename="hack.js")

    assert play.game.servers["home"]["hack.js"] == SCRIPT
    assert "Restored hack.js" in text
    assert restored["written"]["kept_version"]


async def test_restoring_can_be_undone(play: Play) -> None:
    await play.ok("write_file", filename="hack.js", content="// other\n")
    _, restored = await play.ok("restore_file", filename="hack.js")
    version = restored["written"]["kept_version"]
    assert version in restored["notes"][-1]
    await play.ok("restore_file", filename="hack.js", version=version)

    assert play.game.servers["home"]["hack.js"] == "// other\n"


async def test_undoing_twice_goes_back_twice(play: Play) -> None:
    for content in ("v1", "v2", "v3"):
        await play.ok("write_file", filename="a.txt", content=content)
    await play.ok("restore_file", filename="a.txt")
    assert play.game.servers["home"]["a.txt"] == "v2"
    await play.ok("restore_file", filename="a.txt")
    assert play.game.servers["home"]["a.txt"] == "v1"
    text, problem = await play.fails("restore_file", filename="a.txt")

    assert problem["code"] == "not_found"
    assert "No earlier version" in text


async def test_a_version_can_be_compared_before_it_is_chosen(play: Play) -> None:
    for content in ("a\nb\n", "a\nc\n", "a\nd\n"):
        await play.ok("write_file", filename="a.txt", content=content)
    text, compared = await play.ok("restore_file", filename="a.txt", diff=True)

    assert "-d\n+c\n" in text
    assert compared["diff"] == text
    oldest = (await play.ok("restore_file", filename="a.txt", list_only=True))[1]["versions"][-1]["version"]
    newest = (await play.ok("restore_file", filename="a.txt", list_only=True))[1]["versions"][0]["version"]
    text, _ = await play.ok("restore_file", filename="a.txt", diff=True, version=oldest, compare_to=newest)
    assert "-d\n+b\n" in text
    assert play.game.servers["home"]["a.txt"] == "a\nd\n"


async def test_versions_are_listed_newest_first_and_can_be_chosen(play: Play) -> None:
    for content in ("1", "2", "3"):
        await play.ok("write_file", filename="notes.txt", content=content)
    text, listed = await play.ok("restore_file", filename="notes.txt", list_only=True)

    versions = listed["versions"]
    assert [one["bytes"] for one in versions] == [1, 1, 1, 13]
    assert [one["kind"] for one in versions] == ["written", "written", "written", "found"]
    assert all(one["because"] == "write_file" and one["version"] in text for one in versions)
    await play.ok("restore_file", filename="notes.txt", version=versions[-1]["version"])
    assert play.game.servers["home"]["notes.txt"] == "one\ntwo\nthree"


async def test_without_a_name_everything_that_is_kept_of_a_server_is_listed(play: Play) -> None:
    await play.ok("write_file", filename="hack.js", content="1")
    await play.ok("delete_file", filename="notes.txt")

    _, listed = await play.ok("restore_file")
    assert [one["filename"] for one in listed["versions"]] == ["notes.txt", "hack.js", "hack.js"]
    assert (await play.ok("restore_file", server="n00dles"))[0] == "Nothing is kept."


async def test_a_version_that_is_not_there_is_said_so(play: Play) -> None:
    for arguments in ({}, {"version": "0-0-0"}, {"version": "../../relay"}):
        _, problem = await play.fails("restore_file", filename="hack.js", **arguments)
        assert (problem["code"], "list_only" in problem["next_step"]) == ("not_found", True)


async def test_what_was_replaced_stays_although_many_files_are_known(tmp_path: Path) -> None:
    files = {"home": {"precious.txt": "the player's"}}
    async with played(tmp_path, game=Game(3, files), BITBURNER_BACKUP_MAX_FILES="5") as play:
        for number in range(5):
            await play.ok("write_file", filename=f"{number}.txt", content="1")
        _, written = await play.ok("write_file", filename="precious.txt", content="the agent's")
        _, silent = await play.ok("write_file", filename="more.txt", content="1")

        (dropped,) = written["notes"]
        assert dropped.startswith("To make room, the oldest kept versions were dropped: ")
        assert dropped.endswith(" of 0.txt.")
        assert "notes" not in silent
        _, status = await play.ok("connection_status")
        assert "2 of the oldest were dropped" in status["notes"][-1]
        await play.ok("restore_file", filename="precious.txt")
        assert play.game.servers["home"]["precious.txt"] == "the player's"
