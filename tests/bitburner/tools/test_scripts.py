"""What is said of a script: its cost by function, its problems, and who imports it."""

from pathlib import Path

import pytest

from bridgehead.bitburner.simulator import methods
from bridgehead.bitburner.simulator.definitions import load_api
from tests.bitburner.playing import FILES, Play, played
from tests.support.game import Game


async def test_the_cost_is_itemised_by_function(play: Play) -> None:
    play.game.servers["home"]["a.js"] = (
        "export async function main(ns) {"
        " ns.exec('x', 'y'); ns.scan(); ns.tprint(ns.singularity.connect('x')); }"
    )
    result = await play.client.call("calculate_ram", {"filename": "a.js"})

    assert result["content"][0]["text"] == "35.1"
    structured = result["structuredContent"]
    (note,) = structured.pop("notes")
    assert structured == {
        "ram_gb": 35.1,
        "base_gb": 1.6,
        "items": [
            {"name": "ns.singularity.connect", "ram_gb": 32},
            {"name": "ns.exec", "ram_gb": 1.3},
            {"name": "ns.scan", "ram_gb": 0.2},
        ],
        "items_sum_gb": 35.1,
    }
    assert "  1.3 GB  ns.exec" in note
    assert "the game says" not in note
    assert result["content"][1]["text"] == f"Note: {note}"


async def test_imports_are_part_of_it(play: Play) -> None:
    play.game.servers["home"] |= {
        "a.js": "import { go } from './lib/b.js';\nexport async function main(ns) { go(ns); }",
        "lib/b.js": "export function go(ns) { ns.exec('x', 'y'); }",
    }
    _, cost = await play.ok("calculate_ram", filename="a.js")

    assert cost["items"] == [{"name": "ns.exec", "ram_gb": 1.3}]


async def test_a_sum_that_differs_from_the_games_figure_is_said_so(play: Play) -> None:
    play.game.servers["home"]["a.js"] = "export async function main(ns) { ns.corporation.getCorporation(); }"
    result = await play.client.call("calculate_ram", {"filename": "a.js"})

    assert result["structuredContent"]["ram_gb"] == 11.6
    assert "the game says 11.6 GB, and that is what counts" in result["content"][1]["text"]


async def test_the_definitions_figures_are_the_games_for_every_plain_function(tmp_path: Path) -> None:
    """The simulated costs are those of the listing; the sums are those of the definitions made from it."""
    members = next(members for heading, members in load_api() if heading == "# interface NS")
    functions = [one for one in members if one.is_function and not one.real]
    files = {f"{one.name}.js": f"ns.{one.name}()" for one in functions}
    async with played(tmp_path, game=Game(3, {"home": {**FILES["home"], **files}})) as play:
        differing = []
        for one in functions[::4]:
            _, cost = await play.ok("calculate_ram", filename=f"{one.name}.js")
            if cost["items_sum_gb"] != cost["ram_gb"]:
                differing.append(one.name)

    assert differing == []


async def test_ram_is_a_number(play: Play) -> None:
    text, structured = await play.ok("calculate_ram", filename="hack.js")

    assert float(text) == structured["ram_gb"] > 1.6


async def test_ram_without_a_fraction_is_written_without_one(tmp_path: Path) -> None:
    from bridgehead.bitburner.tools.scripts import format_cost

    assert (format_cost(2.0), format_cost(1.6)) == ("2", "1.6")


async def test_ram_of_a_text_is_refused_before_any_call(play: Play) -> None:
    text, _ = await play.fails("calculate_ram", filename="notes.txt")

    assert "only scripts" in text
    assert play.game.requests == []


async def test_a_write_tells_cost_problems_and_hints_in_its_text(play: Play) -> None:
    content = "export async function main(ns) {\n  ns.getServerMoney('n00dles');\n}\n"
    text, written = await play.ok("write_file", filename="a.js", content=content)

    assert text == "OK"
    cost, text = written["notes"]
    assert cost == "It costs 1.6 GB of RAM."
    assert "line 2, column 6: ns.getServerMoney does not exist" in text
    assert "ns.getServerMoneyAvailable(host: string): number" in text
    assert [one["code"] for one in written["problems"]] == ["unknown_api"]
    text, written = await play.ok(
        "edit_file", filename="a.js", old_text="getServerMoney(", new_text="getServerMoneyAvailable("
    )
    assert written["problems"] == []


async def test_a_syntax_error_is_told_with_its_place(play: Play) -> None:
    _, written = await play.ok("write_file", filename="a.js", content="let a = 1;\nlet x = \n")

    assert "line 2, column 1: Syntax error" in written["notes"][-1]
    assert written["problems"][0]["code"] == "syntax_error"
    assert play.game.servers["home"]["a.js"] == "let a = 1;\nlet x = \n"


async def test_importers_are_named_when_a_file_moves_or_goes(play: Play) -> None:
    play.game.servers["home"] |= {
        "main.js": "import { a } from 'lib/tools.js';\nexport async function main(ns) { ns.print(a); }",
        "near.js": "// lib/tools.js\nconst text = 'lib/tools.js';",
        "lib/other.ts": "import { a } from './tools';\n",
    }
    _, moved = await play.ok("move_file", filename="lib/tools.js", to="lib/kit.js")
    assert moved["imported_by"] == ["main.js", "lib/other.ts"]
    assert moved["next"] == ["Edit main.js, lib/other.ts: they import it under its old path."]
    await play.ok("move_file", filename="lib/kit.js", to="lib/tools.js")
    text, deleted = await play.ok("delete_file", filename="lib/tools.js")

    assert deleted["imported_by"] == ["main.js", "lib/other.ts"]
    assert text == "OK"
    assert deleted["notes"][0].startswith("It is imported by main.js, lib/other.ts")


async def test_an_importer_may_be_written_before_its_library(play: Play) -> None:
    source = "import { b } from './b.js';\nexport async function main(ns) { b(ns); }\n"
    _, written = await play.ok("write_file", filename="a.js", content=source)

    assert [(one["code"], one["when"]) for one in written["problems"]] == [("missing_import", "maybe")]
    assert written["ram_problem"] == (
        'The game calculates no RAM cost: Invalid module: "./b.js". Base module: "a.js".'
    )
    await play.ok("write_file", filename="b.js", content="export const b = (ns) => ns.scan();\n")
    _, written = await play.ok("write_file", filename="a.js", content=source)
    assert (written["problems"], written["ram_gb"]) == ([], 1.8)


async def test_a_cost_that_the_game_does_not_calculate_comes_with_the_reason(play: Play) -> None:
    play.game.servers["home"]["a.js"] = "import { b } from './gone';\n"
    text, problem = await play.fails("calculate_ram", filename="a.js")

    assert problem["code"] == "remote_error"
    assert 'Invalid module: "./gone". Base module: "a.js".' in text


async def test_a_linked_list_is_written_and_checked(play: Play) -> None:
    swaps = "a = b; b = c; c = a; a = b.next; b = c.next; c = a.next;\n" * 50
    source = f"export async function main(ns) {{ let a, b, c;\n while (ns.args[0]) {{ {swaps} }} }}\n"
    _, written = await play.ok("write_file", filename="list.js", content=source)

    assert written["problems"] == []


async def test_a_long_chain_of_imports_leaves_no_other_import_unread(play: Play) -> None:
    chain = {f"c{n}.js": f"export * from './c{n + 1}.js';\n" for n in range(120)}
    play.game.servers["home"] |= chain | {"c120.js": "export const x = 1;\n"}
    source = (
        "import { a } from 'lib/tools.js';\nimport { x } from './c0.js';\n"
        "export async function main(ns) { ns.print(a, x); }\n"
    )
    _, written = await play.ok("write_file", filename="main.js", content=source)

    assert written["problems"] == []


async def test_a_script_that_the_game_reads_is_not_said_to_fail_for_its_syntax(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    variance = "interface Box<out T> { value: T }\nexport async function main(ns: NS) {}\n"
    monkeypatch.setattr(methods, "cost", lambda *_: 1.6)  # the game's parser knows more than our grammar
    _, written = await play.ok("write_file", filename="box.ts", content=variance)

    assert [(one["code"], one["when"]) for one in written["problems"]] == [("syntax_error", "maybe")]
