"""Edits: several at once, all or nothing, and a text that is not there is explained."""

import pytest

from bridgehead.bitburner.changes.edits import Replacement, apply_replacements
from bridgehead.runtime.errors import InvalidArgument
from tests.bitburner.playing import Play

CODE = 'export async function main(ns) {\n  const target = "n00dles";\n  await ns.hack(target);\n}\n'


def refuse(old_text: str, count: int = 1) -> InvalidArgument:
    with pytest.raises(InvalidArgument) as refused:
        apply_replacements("a.js", CODE, [Replacement(old_text, "x", count)])
    return refused.value


@pytest.mark.parametrize(
    ("old_text", "explained"),
    [
        ("const target = 'n00dles';", "line 2, which differs only in whitespace and quotes"),
        ("  const target = 'n00dles';", "line 2, which differs only in quotes"),
        ("\tawait ns.hack(target);", "line 3, which differs only in whitespace"),
        ("  await ns.Hack(target);", "line 3, which differs only in upper and lower case"),
        ("  await ns.hack(target, {threads: 1});", "line 3, which differs"),
        ("  const target = 'n00dles';\n  await  ns.hack(target);", "lines 2 to 3, which differ only in"),
        ("zebra giraffe crocodile", "No part of the file is like it"),
    ],
)
def test_a_text_that_is_not_there_is_explained_by_the_nearest_lines(old_text: str, explained: str) -> None:
    error = refuse(old_text)

    assert "occurs 0 times" in error.message
    assert explained in error.message
    assert "set count" not in str(error)
    if "No part" not in explained:
        line = int(explained.split(",", maxsplit=1)[0].split()[1])
        assert CODE.split("\n")[line - 1] in error.next_step


def test_a_text_that_occurs_too_often_is_told_with_its_lines() -> None:
    error = refuse("target")

    assert "occurs 2 times" in error.message
    assert "on lines 2, 3" in error.message
    assert "set count" in error.next_step


def test_a_later_edit_sees_what_an_earlier_one_made() -> None:
    edits = [Replacement("hack", "grow"), Replacement("grow(target)", "grow(host)")]

    assert "ns.grow(host)" in apply_replacements("a.js", CODE, edits)


@pytest.mark.parametrize(
    ("content", "old_text"),
    [
        ("\n".join(f"line {number} of many" for number in range(200_000)), "zebra " * 5000),
        ("ab" * 450_000, "ab" * 5000 + "c"),
        ("x=function(a){return a+1};" * 6800, "x=function(a){return a+1};" * 300 + "y"),
        ("a\n" * 400_000, "b"),
    ],
    ids=["many lines", "one long line", "a bundle", "tiny lines"],
)
def test_a_text_that_is_not_in_a_large_file_is_refused_in_linear_time(content: str, old_text: str) -> None:
    # Comparing each line with old_text by its longest common parts takes minutes to hours here.
    with pytest.raises(InvalidArgument, match="occurs 0 times"):
        apply_replacements("a.js", content, [Replacement(old_text, "")])


def test_the_nearest_lines_are_found_deep_in_a_file() -> None:
    lines = [f"  const value{number} = ns.getServer(target);" for number in range(3000)]
    old_text = "\n".join(lines[2000:2003]).replace("getServer", "getserver")
    with pytest.raises(InvalidArgument, match="lines 2001 to 2003, which differ only in upper and lower"):
        apply_replacements("a.js", "\n".join(lines), [Replacement(old_text, "")])


@pytest.mark.parametrize(
    ("content", "old_text", "new_text", "expected"),
    [
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb\r\nc", "a\r\nb", "x", "x\r\nc"),
        ("a\r\nb", "b", "b\nc", "a\r\nb\r\nc"),
        ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"),
        ("a", "a", "x\r\ny", "x\r\ny"),
        # Both kinds: everything around the edit stays, and new lines end as most do.
        ("1\n2\r\n3\r\n4\n5\r\n", "3\n4", "x\ny", "1\n2\r\nx\r\ny\n5\r\n"),
        ("1\r\n2\n3\n4\r\n", "\n2\n", "\nx\n", "1\nx\n3\n4\r\n"),
        # Only line ends change, so they are taken exactly.
        ("a\r\nb\r\n", "a\r\n", "a\n", "a\nb\r\n"),
    ],
)
def test_line_ends_need_not_match_and_those_of_the_file_stay(
    content: str, old_text: str, new_text: str, expected: str
) -> None:
    assert apply_replacements("a.js", content, [Replacement(old_text, new_text)]) == expected


async def test_several_edits_are_made_in_one_call_or_none(play: Play) -> None:
    edits = [{"old_text": "one", "new_text": "1"}, {"old_text": "three", "new_text": "3"}]
    await play.ok("edit_file", filename="notes.txt", edits=edits)
    assert play.game.servers["home"]["notes.txt"] == "1\ntwo\n3"

    broken = [{"old_text": "1", "new_text": "one"}, {"old_text": "four", "new_text": "4"}]
    text, _ = await play.fails("edit_file", filename="notes.txt", edits=broken)
    assert "old_text of edit 2 occurs 0 times" in text
    assert play.game.servers["home"]["notes.txt"] == "1\ntwo\n3"


async def test_one_way_of_giving_edits_at_a_time(play: Play) -> None:
    edits = [{"old_text": "one", "new_text": "1"}]
    for arguments in (
        {},
        {"old_text": "one"},
        {"old_text": "one", "new_text": "1", "edits": edits},
    ):
        _, problem = await play.fails("edit_file", filename="notes.txt", **arguments)
        assert problem["code"] == "invalid_argument"
