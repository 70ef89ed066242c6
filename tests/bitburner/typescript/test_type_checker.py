"""Type checker: what is sent, where its findings are in the script, and what happens when it fails."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridgehead.bitburner.settings import BitburnerSettings
from bridgehead.bitburner.typescript import component, language_server
from bridgehead.bitburner.typescript.type_checker import Diagnostic, TypeChecker
from tests.bitburner.netscript.checking_scripts import DEFINITIONS, in_main
from tests.bitburner.playing import bridged, played
from tests.bitburner.typescript.fake_server import write_program

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the program is a script")
TEXT = "export interface NS { hack(host: string): Promise<number>; }\n"


@pytest.fixture
def settings(tmp_path: Path) -> BitburnerSettings:
    settings = BitburnerSettings({"BRIDGEHEAD_STATE_DIR": str(tmp_path / "state")})
    write_program(component.program_path(settings))
    return settings


@pytest.fixture
async def checker(settings: BitburnerSettings) -> AsyncIterator[TypeChecker]:
    checker = TypeChecker(settings)
    yield checker
    await checker.close()


async def check(checker: TypeChecker, source: str, filename: str = "a.js") -> list[Diagnostic] | None:
    return await checker.diagnose(source, filename, DEFINITIONS, TEXT)


def received(checker: TypeChecker) -> str:
    """The last text that the server was sent."""
    assert checker.folder is not None
    return (checker.folder / "received").read_text(encoding="utf-8").split("\0")[-2]


@pytest.mark.parametrize(
    ("filename", "source", "sent"),
    [
        ("a.js", in_main("ns.hack('x');"), "main(/** @type {NS} */ ns)"),
        ("a.js", "export const main = async ns => {};", "async (/** @type {NS} */ ns) =>"),
        ("a.js", "export async function main({ hack }) {}", "main(/** @type {NS} */ { hack })"),
        ("a.ts", "export async function main(ns) {}", "main(ns: NS)"),
        ("a.ts", "export async function main(ns: NS) {}", "main(ns: NS)"),
        ("a.js", "/** @param {NS} ns */\nexport async function main(ns) {}", "main(ns)"),
        ("a.js", "function go(api) {}\n" + in_main("go(ns);"), "go(/** @type {NS} */ api)"),
        ("a.js", "[].map((ns) => ns.x);", "map((ns) =>"),
        ("a.ts", 'import { NS } from "@ns";', 'from "@ns"'),
        ("a.js", 'import { a } from "../../secret.js";', 'from "###############"'),
        ("a.js", 'const a = await import("/etc/x");', 'import("######")'),
        ("a.js", '/// <reference path="/etc/x" />\nlet a;', '//  <reference path="/etc/x" />'),
    ],
)
async def test_parameters_are_typed_and_imports_hidden(
    checker: TypeChecker, filename: str, source: str, sent: str
) -> None:
    assert await check(checker, source, filename) == []
    assert sent in received(checker)


async def test_places_are_those_of_the_script(checker: TypeChecker) -> None:
    source = "export async function main(ns) { const é = '😀'; wrong(ns); }\n"
    (found,) = await check(checker, source) or []

    encoded = source.encode()
    assert encoded[found.start : found.end] == b"wrong"


async def test_the_page_of_the_game_and_the_definitions_are_in_the_folder(checker: TypeChecker) -> None:
    await check(checker, "let a;")

    assert checker.folder is not None
    assert (checker.folder / "ns.d.ts").read_text() == TEXT
    globals_text = (checker.folder / "globals.d.ts").read_text()
    assert globals_text.startswith("interface NS {")
    assert "declare var React: any" in globals_text


async def test_after_a_failure_a_new_server_answers_and_after_three_none(checker: TypeChecker) -> None:
    assert await check(checker, "crash") is None
    assert await check(checker, "wrong") != []
    for _ in range(3):
        assert await check(checker, "crash") is None
    assert await check(checker, "wrong") is None


async def test_a_script_on_which_typescript_hangs_costs_one_deadline(
    checker: TypeChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language_server.LanguageServer.diagnose, "__defaults__", (1.0,))

    assert await check(checker, "hang") is None
    assert await check(checker, "wrong") != []


@pytest.mark.parametrize("source", ["x = " + "[" * 600 + "]" * 600, "x = " + "1 + " * 600 + "1", "f(;"])
async def test_what_typescript_might_hang_on_is_not_sent(checker: TypeChecker, source: str) -> None:
    assert await check(checker, "wrong") != []
    assert await check(checker, source) is None
    assert "[[" not in received(checker)


async def test_without_the_component_or_for_ns1_there_is_nothing_to_say(tmp_path: Path) -> None:
    checker = TypeChecker(BitburnerSettings({"BRIDGEHEAD_STATE_DIR": str(tmp_path)}))

    assert await check(checker, "wrong") is None
    assert await check(checker, "wrong", "a.script") is None
    await checker.close()


async def test_other_definitions_get_a_new_server_and_closing_leaves_nothing(checker: TypeChecker) -> None:
    await check(checker, "let a;")
    first = checker.folder
    await checker.diagnose("let a;", "a.js", DEFINITIONS, TEXT + "// newer\n")
    second = checker.folder
    await checker.close()

    assert first is not None
    assert second is not None
    assert first != second
    assert not first.exists()
    assert not second.exists()


async def test_a_write_brings_what_typescript_finds(tmp_path: Path, settings: BitburnerSettings) -> None:
    async with played(tmp_path / "state") as play:
        _, written = await play.ok("write_file", filename="a.js", content=in_main("wrong(ns);"))

    assert [(one["code"], one["line"]) for one in written["problems"]] == [("undeclared", 2)]


async def test_a_bridge_that_ends_ends_the_server(tmp_path: Path, settings: BitburnerSettings) -> None:
    async with bridged(tmp_path / "state") as play:
        checker = play.session.type_checker
        await check(checker, "let a;")
        folder = checker.folder
    assert folder is not None
    assert not folder.exists()


async def test_a_state_folder_that_cannot_be_made_is_a_missing_checker(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("not a folder", encoding="utf-8")
    checker = TypeChecker(BitburnerSettings({"BRIDGEHEAD_STATE_DIR": str(tmp_path / "state")}))

    assert await check(checker, in_main("ns.hack('x');")) is None
