"""Listing and reading files: the tools, their answers in text and structure, and what they refuse."""

import json
from pathlib import Path
from typing import Any

import pytest

from bridgehead.bitburner.simulator import Faults
from tests.bitburner.playing import FILES, Play, played
from tests.support.game import Game


async def test_files_are_listed_as_a_json_array(play: Play) -> None:
    text, structured = await play.ok("list_files")

    assert sorted(json.loads(text)) == ["hack.js", "lib/tools.js", "notes.txt"]
    assert structured == {"files": json.loads(text)}


async def test_a_file_is_read_as_it_is(play: Play) -> None:
    text, structured = await play.ok("read_file", filename="notes.txt")

    assert text == "one\ntwo\nthree"
    assert structured == {"content": text, "total_lines": 3}


async def test_an_empty_file_reads_as_nothing(play: Play) -> None:
    play.game.servers["home"]["empty.txt"] = ""

    assert (await play.ok("read_file", filename="empty.txt"))[0] == ""


async def test_a_leading_slash_is_dropped_and_dots_are_resolved(play: Play) -> None:
    assert (await play.ok("read_file", filename="/lib/tools.js"))[0] == "export const a = 1;\n"
    assert (await play.ok("read_file", filename="./x/../lib/tools.js"))[0] == "export const a = 1;\n"
    assert {asked["filename"] for asked in play.asked("getFile")} == {"lib/tools.js"}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ({"start_line": 2}, "two\nthree"),
        ({"end_line": 2}, "one\ntwo"),
        ({"start_line": 2, "end_line": 2}, "two"),
        ({"start_line": 3, "end_line": 99}, "three"),
    ],
)
async def test_a_range_of_lines_is_read(play: Play, lines: dict[str, int], expected: str) -> None:
    text, structured = await play.ok("read_file", filename="notes.txt", **lines)

    assert text == structured["content"] == expected
    assert structured["total_lines"] == 3
    assert structured["end_line"] - structured["start_line"] == expected.count("\n")


async def test_a_range_that_is_not_there_is_refused(play: Play) -> None:
    assert "has 3 lines" in (await play.fails("read_file", filename="notes.txt", start_line=4))[0]
    backwards, problem = await play.fails("read_file", filename="notes.txt", start_line=3, end_line=2)
    assert problem["code"] == "invalid_argument"
    assert "before" in backwards


async def test_all_files_come_as_an_array_of_names_and_contents(play: Play) -> None:
    text, structured = await play.ok("get_all_files")

    assert {one["filename"]: one["content"] for one in json.loads(text)} == FILES["home"]
    assert structured is None  # megabytes are sent once


async def test_a_glob_narrows_all_files(play: Play) -> None:
    text, _ = await play.ok("get_all_files", glob="lib/*.js")

    assert [one["filename"] for one in json.loads(text)] == ["lib/tools.js"]


async def test_what_exceeds_the_bytes_is_left_out_and_listed(play: Play) -> None:
    result = await play.client.call("get_all_files", {"max_bytes": 20})

    first, second = (block["text"] for block in result["content"])
    assert [one["filename"] for one in json.loads(first)] == ["lib/tools.js"]
    assert f"hack.js ({len(FILES['home']['hack.js'])} bytes), notes.txt (13 bytes)" in second


async def test_a_large_server_comes_up_to_a_page_and_whole_on_request(play: Play) -> None:
    play.game.servers["home"] = {f"{number:03}.txt": "x" * 1_000 for number in range(200)}

    some = await play.client.call("get_all_files", {})
    text, _ = await play.ok("get_all_files", everything=True)
    narrowed, _ = await play.ok("get_all_files", everything=True, glob="1*.txt")

    told = some["content"][1]["text"]
    assert len(json.loads(some["content"][0]["text"])) == 10
    # Not even the names of what was left out grow with the game.
    assert "Left out of 200 files, with 190000 bytes: 010.txt (1000 bytes)" in told
    assert "039.txt (1000 bytes) and 160 more." in told
    assert "Set max_bytes to 200000, or everything to true, to get them all at once." in told
    assert len(json.loads(text)) == 200
    assert len(json.loads(narrowed)) == 100


async def test_claude_code_is_told_how_long_a_result_may_be(play: Play) -> None:
    listed = {tool["name"]: tool for tool in (await play.client.request("tools/list"))["tools"]}

    assert listed["read_file"]["_meta"]["anthropic/maxResultSizeChars"] == 500_000
    assert all("Bitburner" in tool["_meta"]["anthropic/searchHint"] for tool in listed.values())


async def test_bytes_are_counted_in_utf_8(play: Play) -> None:
    play.game.servers["home"] = {"a.txt": "é" * 10}

    result = await play.client.call("get_all_files", {"max_bytes": 19})

    assert "a.txt (20 bytes)" in result["content"][1]["text"]


async def test_another_server_is_asked_by_its_name(play: Play) -> None:
    play.game.servers["n00dles"] = {"x.js": "1"}

    assert json.loads((await play.ok("list_files", server="n00dles"))[0]) == ["x.js"]


async def test_a_missing_file_tells_what_the_game_said_and_what_to_do(play: Play, generation: int) -> None:
    text, problem = await play.fails("read_file", filename="missing.js")

    said = {2: "File doesn't exist", 3: "File does not exist. Filename: missing.js"}[generation]
    assert problem["remote_message"] == said
    assert said in text
    assert (problem["code"], problem["transient"]) == ("not_found", False)
    assert "list_files" in problem["next_step"]


async def test_a_server_that_is_not_there_points_to_the_list_of_servers(play: Play) -> None:
    _, problem = await play.fails("list_files", server="HOME")

    assert "list_servers" in problem["next_step"]
    assert problem["remote_message"]


@pytest.mark.parametrize("name", ["", "   ", "a b.js", "../up.js", "noext", "x.png", "NUKE.exe"])
async def test_a_bad_name_never_costs_a_round_trip(play: Play, name: str) -> None:
    for tool in ("read_file", "calculate_ram", "delete_file"):
        _, problem = await play.fails(tool, filename=name)
        assert problem["code"] == "invalid_argument"
        assert not problem["transient"]

    assert play.game.requests == []


async def test_an_empty_server_name_is_refused_before_any_call(play: Play) -> None:
    for server in ("", "  ", "a\nb"):
        assert (await play.fails("list_files", server=server))[1]["code"] == "invalid_argument"
    assert play.game.requests == []


async def test_arguments_that_are_not_declared_are_refused_and_counted(play: Play) -> None:
    text, problem = await play.fails("read_file", filename="a.js", path="b.js")

    assert problem["code"] == "invalid_argument"
    assert "path" in text
    assert play.count("tool_errors_total", "read_file") == 1
    assert play.count("tool_calls_total", "read_file") == 1


async def test_an_answer_of_the_wrong_type_is_not_passed_on(tmp_path: Path) -> None:
    game = Game(3, FILES, Faults(nonsense=1.0))
    async with played(tmp_path, game=game) as play:
        _, problem = await play.fails("list_files")

    assert problem["code"] in {"odd_reply", "remote_error"}


async def test_metadata_of_one_file_and_of_all_needs_the_third_generation(
    play: Play, generation: int
) -> None:
    if generation == 2:
        _, problem = await play.fails("get_file_metadata", filename="hack.js")
        assert (problem["code"], "3.0" in problem["next_step"]) == ("unsupported_by_game", True)
        return
    one = (await play.ok("get_file_metadata", filename="hack.js"))[1]["files"]
    every = (await play.ok("get_file_metadata"))[1]["files"]
    assert [entry["filename"] for entry in one] == ["hack.js"]
    assert {entry["filename"] for entry in every} == set(FILES["home"])
    assert all(entry["modified"].endswith("Z") for entry in every)


async def test_metadata_of_many_files_is_of_those_modified_last(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, FILES)) as play:
        for number in range(70):
            play.game.servers["home"][f"old/{number}.txt"] = ""
        await play.ok("write_file", filename="new.txt", content="new")
        _, shown = await play.ok("get_file_metadata")

    names = [entry["filename"] for entry in shown["files"]]
    assert names[0] == "new.txt"
    assert len(names) == 60
    assert f"of {len(FILES['home']) + 71} on home" in shown["notes"][0]
    assert shown["next"] == ["For another file, set filename. list_files has all names."]


async def test_a_newer_game_tells_sizes_too(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, FILES)) as play:
        play.game.world.tells_size = True
        (entry,) = (await play.ok("get_file_metadata", filename="notes.txt"))[1]["files"]

    assert entry["size"] == 13


async def test_half_a_character_in_one_file_spoils_no_other_and_is_named(play: Play) -> None:
    play.game.servers["home"]["cut.js"] = "// one\n// \ud83d half\n"

    result = await play.client.call("read_file", {"filename": "cut.js"})
    assert result["content"][0]["text"] == "// one\n// \U0010d83d half\n"
    assert (
        "cut.js holds half a character (an unpaired surrogate) at line 2, column 4"
        in (result["content"][1]["text"])
    )
    everything = await play.client.call("get_all_files", {})
    assert len(json.loads(everything["content"][0]["text"])) == 4
    assert "cut.js holds half a character" in everything["content"][1]["text"]
    found = await play.client.call("search_files", {"pattern": "half|two"})
    assert len(found["structuredContent"]["matches"]) == 2
    assert "cut.js holds half a character" in found["content"][1]["text"]
    # Notes are about the files in the answer.
    assert "half a character" not in str(await play.client.call("get_all_files", {"glob": "*.txt"}))
    assert "half a character" not in str(await play.client.call("search_files", {"pattern": "two"}))
    await play.ok("edit_file", filename="cut.js", old_text="half", new_text="whole")
    assert play.game.servers["home"]["cut.js"] == "// one\n// \ud83d whole\n"
    await play.ok("restore_file", filename="cut.js")
    assert play.game.servers["home"]["cut.js"] == "// one\n// \ud83d half\n"
    await play.ok("delete_file", filename="cut.js")
    assert "cut.js" not in play.game.servers["home"]


async def test_private_character_stays_what_it_is(play: Play) -> None:
    await play.ok("write_file", filename="icons.txt", content="\U0010d83d")
    result = await play.client.call("read_file", {"filename": "icons.txt"})

    assert play.game.servers["home"]["icons.txt"] == "\U0010d83d"
    assert len(result["content"]) == 1


async def test_lost_file_is_named_with_the_way_to_get_it_back(play: Play) -> None:
    await play.ok("write_file", filename="tool.js", content="// tool\n")
    del play.game.servers["home"]["tool.js"]
    edit = {"filename": "tool.js", "old_text": "tool", "new_text": "x"}
    for tool, arguments in (("read_file", {"filename": "tool.js"}), ("edit_file", edit)):
        _, problem = await play.fails(tool, **arguments)
        assert problem["code"] == "not_found"
        assert problem["next_step"].startswith("It was written here at 20")
        assert problem["next_step"].endswith("restore_file brings it back.")
    await play.ok("restore_file", filename="tool.js")
    await play.ok("delete_file", filename="tool.js")

    _, problem = await play.fails("read_file", filename="tool.js")
    assert "restore_file" not in problem["next_step"]


async def test_a_replacement_character_that_the_file_really_holds_is_no_half(play: Play) -> None:
    play.game.servers["home"]["odd.txt"] = "a \ufffd b"
    text, read = await play.ok("read_file", filename="odd.txt")

    assert text == "a \ufffd b"
    assert "notes" not in read


async def test_a_long_file_comes_in_parts_that_say_how_to_go_on(play: Play) -> None:
    lines = [f"// line {number} of a long script" for number in range(1, 5001)]
    play.game.servers["home"]["long.js"] = "\n".join(lines) + "\n"
    read: list[str] = []
    arguments: dict[str, Any] = {"filename": "long.js"}
    while True:
        result = await play.client.call("read_file", arguments)
        part = result["structuredContent"]
        assert part["total_lines"] == 5000
        assert len(part["content"]) <= 12_000
        read += part["content"].split("\n")
        if not part.get("truncated"):
            break
        assert f"set start_line to {part['end_line'] + 1}" in result["content"][1]["text"]
        arguments["start_line"] = part["end_line"] + 1

    assert read == lines


async def test_a_line_that_is_too_long_alone_is_cut_and_said_so(play: Play) -> None:
    play.game.servers["home"]["min.js"] = "x" * 60_000
    result = await play.client.call("read_file", {"filename": "min.js"})

    assert len(result["content"][0]["text"]) == 12_000
    assert "raise max_characters" in result["content"][1]["text"]


async def test_names_can_be_chosen_by_a_pattern_and_come_in_pages(tmp_path: Path) -> None:
    names = [*(f"lib/{number:04}.js" for number in range(1200)), "notes.txt"]
    async with played(tmp_path, game=Game(3, {"home": dict.fromkeys(names, "")})) as play:
        whole, listed = await play.ok("list_files")
        assert sorted(json.loads(whole)) == names
        assert "total" not in listed
        assert listed["next"] == [
            "For 500 at a time give page, 1 to 3; for some only, glob, such as lib/*.js."
        ]
        assert json.loads((await play.ok("list_files", glob="*.txt"))[0]) == ["notes.txt"]
        text, listed = await play.ok("list_files", glob="lib/*.js", page=3)
        assert json.loads(text) == listed["files"] == names[1000:1200]
        assert listed["total"] == 1200
        assert listed["notes"] == ["This is page 3 of 3; there are 1200 files."]
        text, _ = await play.fails("list_files", page=4)
        assert "the last is 3, with 1201 files in all" in text
        empty, none = await play.ok("list_files", glob="*.ts")
        assert empty == "[]"
        assert none["notes"] == ["No file matches *.ts; there are 1201 files. list_files shows their paths."]


async def test_more_than_an_answer_holds_is_refused_with_what_to_do(play: Play) -> None:
    play.game.servers["home"] = {f"{number}.txt": "x" * 1_000_000 for number in range(9)}

    refused = await play.client.call("get_all_files", {"everything": True})
    some = await play.client.call("get_all_files", {"max_bytes": 10**9})

    told = refused["content"][0]["text"]
    assert refused["isError"]
    assert "These 9 files have 9,000,000 bytes; one answer has at most 8,000,000." in told
    assert "Choose files with glob" in told
    assert len(json.loads(some["content"][0]["text"])) == 8
    assert "8.txt (1000000 bytes)" in some["content"][1]["text"]
    assert "everything" not in some["content"][1]["text"]


async def test_all_files_of_a_large_game_fit_what_clients_show(play: Play) -> None:
    """Qwen Code shows about 30,000 characters of text and structure together."""
    play.game.servers["home"] = {f"scripts/part{n:04}/worker.js": "  x = 1;\n" * 100 for n in range(500)}
    result = await play.client.call("get_all_files", {})

    assert len(json.dumps(result["content"])) < 30_000
    assert "and 459 more" in result["content"][1]["text"]
