"""The rules for names, held to what the game was recorded to accept and refuse."""

import json
from pathlib import Path

import pytest

from bridgehead.bitburner.game import paths
from bridgehead.runtime.errors import InvalidArgument
from tests.bitburner.playing import Play

RECORDING = Path(__file__).parents[1] / "recording.jsonl"
ONLY_SINCE_3 = {"style.css"}


def recorded(method: str) -> list[tuple[str, bool]]:
    """Each name that the game was asked for, and whether it took it for the name of a file."""
    found = []
    for line in RECORDING.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        try:
            request, reply = json.loads(entry["request"]), json.loads(entry["reply"])
        except ValueError:
            continue
        if not isinstance(request, dict) or request.get("method") != method:
            continue
        name = (request.get("params") or {}).get("filename")
        error = str(reply.get("error", ""))
        if isinstance(name, str) and not any(word in error for word in ("hostname", "misses", "Misses")):
            found.append((name, not error.startswith("Invalid file")))
    return found


@pytest.mark.parametrize(("name", "is_accepted"), recorded("pushFile") + recorded("getFile"))
def test_a_name_is_judged_as_the_game_judges_it(name: str, *, is_accepted: bool) -> None:
    if name in ONLY_SINCE_3:
        assert paths.validate_filename(name) == name
    elif is_accepted:
        assert paths.validate_filename(name)
    else:
        with pytest.raises(InvalidArgument):
            paths.validate_filename(name)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("/a.js", "a.js"),
        ("./a/../b.js", "b.js"),
        ("a/./b.ts", "a/b.ts"),
        ("x" * 300 + ".js", "x" * 300 + ".js"),
    ],
)
def test_a_name_is_returned_as_the_game_stores_it(name: str, stored: str) -> None:
    assert paths.validate_filename(name) == stored


@pytest.mark.parametrize(
    "name", ["//a.js", "a/", "..", ".", "a/../..", "a/..", "/./a.js", "a|b.js", "A.JS", "a."]
)
def test_a_name_that_the_game_would_refuse_is_refused_here(name: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        paths.validate_filename(name)

    assert refusal.value.next_step


@pytest.mark.parametrize("name", ["NUKE.exe", "a.cct", "a.lit", "a.msg", "x.JS", "NUKE.exe/../a.exe"])
def test_nothing_but_scripts_and_texts_can_even_be_named(name: str) -> None:
    with pytest.raises(InvalidArgument):
        paths.validate_filename(name)


def test_a_name_of_a_megabyte_is_judged_like_any_other_and_not_remembered() -> None:
    remembered = paths._validate_once.cache_info().currsize  # noqa: SLF001

    assert paths.validate_filename("./" + "a" * 1_000_000 + ".js") == "a" * 1_000_000 + ".js"
    assert paths._validate_once.cache_info().currsize == remembered  # noqa: SLF001


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("get_all_files", {"server": "home", "glob": "?" * 1001}),
        ("list_servers", {"glob": "?" * 1001}),
        ("search_files", {"pattern": "a", "glob": "?" * 1001}),
        ("search_definitions", {"query": "a" * 1001}),
    ],
)
async def test_what_is_searched_for_has_a_limit_since_a_pattern_takes_long_to_compile(
    play: Play, tool: str, given: dict[str, str]
) -> None:
    assert "1000" in str(await play.fails(tool, **given))


@pytest.mark.parametrize("tool", ["list_files", "get_all_files", "check_files"])
@pytest.mark.parametrize("glob", ["{a,b}" * 15, "**/a/" * 8 + "b"])
async def test_a_glob_that_would_take_long_is_refused(play: Play, tool: str, glob: str) -> None:
    assert (await play.fails(tool, glob=glob))[1]["code"] == "invalid_argument"


def test_a_server_keeps_its_exact_letters() -> None:
    assert paths.validate_server("CSEC") == "CSEC"
    assert paths.validate_server("10.1.2.3") == "10.1.2.3"


def test_the_kind_of_a_file_is_told_by_its_end() -> None:
    kinds = [paths.guess_mime_type(name) for name in ("a.json", "a.css", "a.txt", "a.ts")]

    assert kinds == ["application/json", "text/css", "text/plain", "text/javascript"]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("**/*.js", {"hack.js", "lib/tools.js"}),
        ("*.js", {"hack.js", "lib/tools.js"}),
        ("*.{js,ts}", {"hack.js", "lib/tools.js"}),
        ("lib/*.js", {"lib/tools.js"}),
        ("/lib/**", {"lib/tools.js"}),
        ("/*.js", {"hack.js"}),
        ("[hn]*", {"hack.js", "notes.txt"}),
        ("HACK.js", set()),
    ],
)
async def test_globs_are_those_of_every_other_tool(play: Play, glob: str, expected: set[str]) -> None:
    found, _ = await play.ok("get_all_files", glob=glob)

    assert {one["filename"] for one in json.loads(found)} == expected
