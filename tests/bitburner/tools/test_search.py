"""Searching files: lines by regular expression, bounded, and stopped when the pattern runs away."""

import asyncio
import os
from pathlib import Path

import pytest

from bridgehead.bitburner.game.remote import GameFile
from bridgehead.bitburner.tools import search
from bridgehead.bitburner.tools.matching import Job, MatchResult, find_matches
from tests.bitburner.playing import Play, played
from tests.support.game import Game
from tests.support.waiting import PATIENCE


async def test_lines_are_found_with_their_files_and_numbers(play: Play) -> None:
    text, structured = await play.ok("search_files", pattern=r"^t\w+")

    assert text.splitlines() == ["notes.txt:2: two", "notes.txt:3: three"]
    assert structured["matches"][0] == {"filename": "notes.txt", "line": 2, "text": "two"}
    assert (structured["files_searched"], structured["truncated"]) == (3, False)


async def test_a_search_is_narrowed_by_glob_and_blind_to_case_if_told(play: Play) -> None:
    assert (await play.ok("search_files", pattern="EXPORT", glob="lib/*"))[0].startswith("No line in 1 files")
    text, _ = await play.ok("search_files", pattern="EXPORT", glob="lib/*", ignore_case=True)

    assert text == "lib/tools.js:1: export const a = 1;"


async def test_the_number_of_matches_is_bounded(play: Play) -> None:
    play.game.servers["home"] = {"a.txt": "x\n" * 50}

    text, structured = await play.ok("search_files", pattern="x", max_matches=10)

    assert (len(structured["matches"]), structured["truncated"]) == (10, True)
    assert len(text.splitlines()) == 10
    assert structured["notes"] == ["There are more than these 10 matches."]
    assert structured["next"] == ["Narrow pattern or glob, or raise max_matches."]


async def test_a_long_line_is_shortened(play: Play) -> None:
    play.game.servers["home"] = {"a.txt": "x" * 5000}

    text, _ = await play.ok("search_files", pattern="x")

    assert len(text) < 400
    assert "(5000 characters)" in text


async def test_a_pattern_that_cannot_be_used_is_refused(play: Play) -> None:
    text, problem = await play.fails("search_files", pattern="(")

    assert problem["code"] == "invalid_argument"
    assert "cannot be used" in text


async def test_a_pattern_that_runs_away_is_stopped_and_others_go_on_meanwhile(tmp_path: Path) -> None:
    game = Game(3, {"home": {"a.txt": "a" * 40 + "b"}})
    async with played(tmp_path, game=game) as play:
        search = asyncio.ensure_future(play.fails("search_files", pattern="(a+)+$"))
        for _ in range(20):
            await play.ok("list_files")
        assert not search.done()
        text, problem = await search

    assert problem["code"] == "pattern_too_slow"
    assert "stopped after 3" in text


async def test_a_search_that_is_cancelled_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SEARCH_SECONDS", 60.0)
    game = Game(3, {"home": {"a.txt": "a" * 40 + "b"}})
    async with played(tmp_path, game=game) as play:
        number, call = play.client.start(
            "tools/call", {"name": "search_files", "arguments": {"pattern": "(a+)+$"}}
        )
        await _until_searching()
        await play.client.notify("notifications/cancelled", {"requestId": number})
        await call

    assert _searching() == 0


async def _until_searching() -> None:
    async with asyncio.timeout(PATIENCE):
        while not _searching():
            await asyncio.sleep(0.01)


def _searching() -> int:
    """How many matching processes of ours there are."""
    own = str(os.getpid())
    count = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            command = (stat.parent / "cmdline").read_bytes()
        except OSError:
            continue
        count += fields[1] == own and b"bridgehead.bitburner.tools.matching" in command
    return count


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("b$", [("a.js", 2)]), (r"\bz", []), ("a", [("a.js", 1), ("c.js", 1)])],
)
def test_matching_looks_at_each_line(pattern: str, expected: list[tuple[str, int]]) -> None:
    job = Job(
        pattern, ignore_case=False, limit=10, seconds=1, files=[("", "a.js", "a\nb"), ("", "c.js", "ca")]
    )

    assert [(one.filename, one.line) for one in find_matches(job).matches] == expected


async def test_a_pattern_that_chooses_no_file_is_told_apart_from_no_match(play: Play) -> None:
    none, _ = await play.ok("search_files", pattern="zebra")
    _, unchosen = await play.ok("search_files", pattern="two", glob="*.css")

    assert "No line in 3 files matches" in none
    assert "No file matches *.css; there are 3 files" in unchosen["notes"][0]


async def test_every_server_with_root_access_is_searched_at_once(play: Play) -> None:
    play.game.servers["n00dles"] = {"a.js": "// two\n"}
    play.game.world.rooted.add("n00dles")
    text, found = await play.ok("search_files", pattern="two", all_servers=True)

    assert {(one["server"], one["filename"]) for one in found["matches"]} == {
        ("home", "notes.txt"),
        ("n00dles", "a.js"),
    }
    assert "n00dles:a.js:1: // two" in text
    play.game.world.rooted.discard("n00dles")
    assert "n00dles" not in (await play.ok("search_files", pattern="two", all_servers=True))[0]


async def test_searches_that_wait_hold_no_files(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, going_on, read_all = 0, asyncio.Event(), play.session.remote.read_all

    async def count_reads(server: str) -> list[GameFile]:
        nonlocal reads
        reads += 1
        return await read_all(server)

    async def match_later(job: Job) -> MatchResult:
        await going_on.wait()
        return MatchResult()

    monkeypatch.setattr(play.session.remote, "read_all", count_reads)
    monkeypatch.setattr(search, "_run_matching", match_later)
    searches = [asyncio.ensure_future(play.ok("search_files", pattern="x")) for _ in range(6)]
    for _ in range(20):
        await play.ok("list_files")

    assert reads == 2  # as many as search at once
    going_on.set()
    await asyncio.gather(*searches)
    assert reads == 6
