"""`restore_file`: lists, compares and brings back what is kept."""

from tests.bitburner.playing import Play


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


async def test_several_files_come_back_at_once_and_the_others_are_named(play: Play) -> None:
    before = dict(play.game.servers["home"])
    for filename in ("hack.js", "notes.txt"):
        await play.ok("write_file", filename=filename, content="lost")
    _, found = await play.ok("restore_file", filenames=["hack.js", "notes.txt", "never.js"])

    assert sorted(found["restored"]) == ["hack.js", "notes.txt"]
    assert [one["filename"] for one in found["failed"]] == ["never.js"]
    assert play.game.servers["home"] == before
