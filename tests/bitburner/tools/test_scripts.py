"""What is said of a script: its problems, and who imports it."""

from tests.bitburner.playing import Play


async def test_a_write_tells_cost_problems_and_hints_in_its_text(play: Play) -> None:
    content = "export async function main(ns) {\n  ns.getServerMoney('n00dles');\n}\n"
    text, written = await play.ok("write_file", filename="a.js", content=content)

    assert text.startswith("OK. It costs 1.6 GB of RAM.")
    assert "line 2, column 6: ns.getServerMoney does not exist" in text
    assert "ns.getServerMoneyAvailable(host: string): number" in text
    assert [one["code"] for one in written["problems"]] == ["unknown_api"]
    text, written = await play.ok(
        "edit_file", filename="a.js", old_text="getServerMoney(", new_text="getServerMoneyAvailable("
    )
    assert written["problems"] == []


async def test_a_syntax_error_is_told_with_its_place(play: Play) -> None:
    text, written = await play.ok("write_file", filename="a.js", content="let a = 1;\nlet x = \n")

    assert "line 2, column 1: Syntax error" in text
    assert written["problems"][0]["code"] == "syntax_error"
    assert play.game.servers["home"]["a.js"] == "let a = 1;\nlet x = \n"


async def test_importers_are_named_when_a_file_moves_or_goes(play: Play) -> None:
    play.game.servers["home"] |= {
        "main.js": "import { a } from 'lib/tools.js';\nexport async function main(ns) { ns.print(a); }",
        "near.js": "// lib/tools.js\nconst text = 'lib/tools.js';",
        "lib/other.ts": "import { a } from './tools';\n",
    }
    text, moved = await play.ok("move_file", filename="lib/tools.js", to="lib/kit.js")
    assert moved["imported_by"] == ["main.js", "lib/other.ts"]
    assert "imported under its old path by main.js, lib/other.ts" in text
    await play.ok("move_file", filename="lib/kit.js", to="lib/tools.js")
    text, deleted = await play.ok("delete_file", filename="lib/tools.js")

    assert deleted["imported_by"] == ["main.js", "lib/other.ts"]
    assert text.startswith("OK. It is imported by main.js, lib/other.ts")
