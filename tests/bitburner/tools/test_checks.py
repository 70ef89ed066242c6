"""check_files: which scripts of the game are wrong, and what a draft would do, before anything is written."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bridgehead.bitburner.game.remote import GameFile
from bridgehead.bitburner.tools import checks
from tests.bitburner.playing import Play

RIGHT = "export async function main(ns) { await ns.hack('n00dles'); }\n"
WRONG = "export async function main(ns) {\n  ns.hakc('n00dles');\n}\n"


async def test_scripts_with_problems_are_listed_and_the_others_counted(play: Play) -> None:
    play.game.servers["home"] |= {
        "old/a.js": WRONG,
        "old/b.js": RIGHT,
        "c.js": WRONG,
        "old/notes.txt": "hakc",
    }
    text, found = await play.ok("check_files", glob="old/*")

    assert (found["checked"], found["with_problems"]) == (2, 1)
    assert [one["filename"] for one in found["files"]] == ["old/a.js"]
    assert found["files"][0]["problems"][0]["code"] == "unknown_api"
    assert "Checked 2 scripts; 1 with problems." in text
    assert "line 2, column 6: ns.hakc does not exist" in text


async def test_without_a_glob_every_script_of_the_server_is_checked(play: Play) -> None:
    _, found = await play.ok("check_files")

    assert (found["checked"], found["files"]) == (2, [])


async def test_drafts_are_checked_with_each_other_and_with_the_game_and_nothing_is_written(
    play: Play,
) -> None:
    main = "import { go } from './go.js';\nimport { a } from './tools.js';\n"
    drafts = {
        "lib/main.js": f"{main}export async function main(ns) {{ await go(ns, a); }}\n",
        "lib/go.js": "export async function go(ns) { await ns.hack('n00dles'); ns.scan(); }\n",
    }
    text, found = await play.ok(
        "check_files", drafts=[{"filename": name, "content": text} for name, text in drafts.items()]
    )

    costs = {one["filename"]: one["ram_gb"] for one in found["files"]}
    assert costs == {"lib/main.js": 1.9, "lib/go.js": 1.9}
    assert [one["problems"] for one in found["files"]] == [[], []]
    assert "lib/go.js\nIt costs 1.9 GB of RAM." in text
    assert play.asked("pushFile") == []


async def test_a_draft_without_a_cost_comes_with_the_games_reason(play: Play) -> None:
    _, found = await play.ok("check_files", drafts=[{"filename": "a.js", "content": "import './gone.js';\n"}])

    (one,) = found["files"]
    assert one["ram_problem"] == 'Invalid module: "./gone.js". Base module: "a.js".'
    assert [problem["code"] for problem in one["problems"]] == ["missing_import"]
    assert one["problems"][0]["when"] == "start"


async def test_scripts_are_checked_against_another_version_of_the_game(play: Play, tmp_path: Path) -> None:
    play.game.servers["home"] = {"a.js": "export async function main(ns) { ns.tprint(ns.scan()); }\n"}
    assert (await play.ok("check_files"))[1]["with_problems"] == 0
    _, problem = await play.fails("check_files", generation="4.x")
    assert "There are no definitions of 4.x" in problem["message"]
    own = next(tmp_path.rglob("definitions-*.d.ts")).name.removeprefix("definitions-").removesuffix(".d.ts")
    assert (await play.ok("check_files", generation=own))[1]["with_problems"] == 0

    newer = next(tmp_path.rglob("definitions.d.ts")).with_name("definitions-4.x.d.ts")
    newer.write_text("interface NS {\n  tprint(text: string): void;\n  neighbors(): string[];\n}\n")
    _, found = await play.ok("check_files", generation="4.x")
    assert "ns.scan does not exist" in found["files"][0]["problems"][0]["message"]


async def test_what_one_call_leaves_out_is_told_with_how_to_check_it(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "_MAX_CHARACTERS", 100)
    play.game.servers["home"] = {f"{name}.js": RIGHT for name in "abc"}
    result = await play.client.call("check_files", {})

    (note,) = result["structuredContent"]["notes"]
    assert note.startswith("2 scripts were not checked, from b.js on")
    assert note in result["content"][1]["text"]


async def test_a_glob_that_fits_nothing_and_a_glob_with_drafts_are_explained(play: Play) -> None:
    result = await play.client.call("check_files", {"glob": "*.tsx"})
    assert "*.tsx" in result["structuredContent"]["notes"][0]

    await play.fails("check_files", glob="*.js", drafts=[{"filename": "a.js", "content": ""}])
    await play.fails("check_files", drafts=[{"filename": "a.txt", "content": ""}])


@pytest.mark.parametrize(
    ("tool", "arguments"), [("check_files", {}), ("delete_file", {"filename": "lib/tools.js"})]
)
async def test_checks_that_wait_for_a_parser_hold_no_files(
    play: Play, monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any]
) -> None:
    reads, read_all = 0, play.session.remote.read_all

    async def count_reads(server: str) -> list[GameFile]:
        nonlocal reads
        reads += 1
        return await read_all(server)

    await play.session.load_index()
    monkeypatch.setattr(play.session.remote, "read_all", count_reads)
    async with play.session.parsing.take(), play.session.parsing.take():  # no parser is free
        calls = [asyncio.ensure_future(play.client.call(tool, arguments)) for _ in range(8)]
        for _ in range(20):
            await play.ok("list_files")
        assert 0 < reads <= 4
    await asyncio.gather(*calls)
