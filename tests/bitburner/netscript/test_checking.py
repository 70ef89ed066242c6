"""Checking: what is wrong in a script is named, with its place and what to write instead."""

import pytest

from bridgehead.bitburner.netscript.checking import Problem, World, check_script
from bridgehead.bitburner.netscript.definitions import Definitions
from bridgehead.bitburner.netscript.search import DefinitionSearch
from tests.bitburner.netscript.checking_scripts import DEFINITIONS, SEARCH, check, in_main
from tests.bitburner.netscript.corpus_cases import Case, load


def test_a_function_that_does_not_exist_is_named_with_the_nearest_and_their_signatures() -> None:
    (problem,) = check(in_main("  const money = ns.getServerMoney('n00dles');"))

    assert (problem.code, problem.line, problem.column) == ("unknown_api", 2, 20)
    assert "ns.getServerMoney does not exist" in problem.message
    assert "ns.getServerMoneyAvailable(host: string): number" in problem.message


def test_ns1_scripts_and_empty_definitions_are_not_checked() -> None:
    assert check("hakc('n00dles');", "a.script") == []
    empty = Definitions("")
    assert check_script(in_main("ns.hakc();"), "a.js", empty, DefinitionSearch(empty)) == []


WRONG = load("wrong") + load("fresh_wrong") + load("newest_wrong") + load("last_wrong")
SEEDED = load("seeded_wrong")
RIGHT = load("right") + load("fresh_right") + load("held_right") + load("newest_right") + load("last_right")
SEEDED_RIGHT = load("seeded_right")
SERVERS = frozenset({"home", "n00dles", "foodnstuff", "CSEC"})


def check_case(case: Case) -> list[Problem]:
    # The older cases run scripts that they do not come with.
    world = World(SERVERS, frozenset(case.files)) if case in SEEDED + SEEDED_RIGHT else None
    return check_script(case.files[case.filename], case.filename, DEFINITIONS, SEARCH, case.files, world)


@pytest.mark.parametrize("case", RIGHT + SEEDED_RIGHT, ids=lambda case: case.filename)
def test_a_script_that_works_raises_no_alarm(case: Case) -> None:
    assert check_case(case) == []


def test_most_mistakes_are_named() -> None:
    assert len(WRONG) >= 65
    assert sum(bool(check_case(case)) for case in WRONG) >= 104


@pytest.mark.parametrize("case", SEEDED, ids=lambda case: case.filename)
def test_mistake_is_named(case: Case) -> None:
    assert check_case(case) != []


@pytest.mark.parametrize("case", WRONG + SEEDED, ids=lambda case: case.filename)
def test_a_script_is_said_not_to_start_only_if_it_does_not(case: Case) -> None:
    fails_at_start = any(problem.when == "start" for problem in check_case(case))

    assert not fails_at_start or "does not start" in case.verdict


@pytest.mark.parametrize(
    ("body", "code", "when"),
    [
        ("ns.hack('x'); ns.print(1);", "not_awaited", "line"),
        ("ns.print(1); ns.hack('x');", "not_awaited", "maybe"),
        ("ns.prompt('x'); ns.print(1);", "not_awaited", "maybe"),
        ("ns.pid();", "not_a_function", "line"),
        ("const n = ns.getHackingLevel - 1;", "not_called", "maybe"),
        ("for (const host of ns.scan) ns.print(host);", "not_called", "line"),
        ("ns.print(ns.scan.map((host) => host));", "not_called", "line"),
        ("const server = 'x'; ns.print(sever);", "undeclared", "line"),
        ("const server = 'x'; ns.print(`${servre}`);", "undeclared", "line"),
        ("log(1);\n}\nfunction log(text) {\n  ns.print(text);", "undeclared", "line"),
        (
            "const level = ns.getPlayer().hackingLevel; if (level > 3) ns.print(1);",
            "unknown_property",
            "maybe",
        ),
        ("const later = ns.hakc;", "unknown_api", "maybe"),
        ("const later = ns.hakc; ns.hakc('x');", "unknown_api", "line"),
        ("ns.hakc.now;", "unknown_api", "line"),
        ("const { hakc } = ns;", "unknown_api", "maybe"),
        ("const { hakc } = ns; hakc('x');", "unknown_api", "line"),
        ("for (;;) ns.print(1);", "endless_loop", "line"),
        ("do { ns.print(1); } while (true);", "endless_loop", "line"),
        ("while (true) { for (const host of ns.scan()) if (host) break; }", "endless_loop", "line"),
        ("let gained = 0; gained += ns.hack('x');", "not_awaited", "maybe"),
        ("const gained = 'It gave ' + ns.hack('x'); ns.print(gained);", "not_awaited", "maybe"),
        ("const runs = 0; runs++;", "assigned_constant", "line"),
        ("ns.stock.placeOrder('ECP', 1, 1, 'Limit', 'L');", "wrong_argument", "maybe"),
        (
            "for await (const a of []) {}\n} function f() { for await (const a of []) {}",
            "syntax_error",
            "start",
        ),
    ],
)
def test_a_problem_tells_what_it_does_to_the_script(body: str, code: str, when: str) -> None:
    assert [(one.code, one.when) for one in check(in_main(body))] == [(code, when)]


@pytest.mark.parametrize(
    "body",
    [
        "const later = ns.hack('x'); await later;",
        "ns.hack('x').then(() => ns.print(1));",
        "switch (1) { case 1: let a; } switch (2) { case 2: let a; }",
        "let a = 1; { let a = 2; } for (let a of []) {} a = 3;",
        "const f = async () => { await ns.sleep(1); }; await f();",
        "while (true) { if (ns.args.length) return; }",
        "while (true) ns.exit();",
        "for (;;) { if (ns.args.length) break; }",
        "search: for (;;) { for (const host of ns.scan()) { if (host === 'x') break search; } }",
        "do { await ns.sleep(1); } while (true);",
        "const stop = () => { throw new Error('x'); }; while (true) { if (ns.args.length) stop(); }",
        "const take = () => stop(); try { while (true) take(); } catch {}\n} function stop() { throw 1;",
        "function* ids() { for (let n = 0; ; n++) yield n; }",
        "const short = (ns) => ns.toFixed(2); ns.print(short(3.14));",
        "const size = (ns) => ns.size; ns.print([{ size: 1 }].map(size));",
        "const buy = ns.cloud ? ns.cloud.buy : null; if (buy) buy('x');",
        "for (let n = 0; n < 3; n++) await ns.sleep(n);",
        "ns.run('a.js', 1, ...ns.args, [], true);",
        "const sleep = (ms) => new Promise((done) => setTimeout(done, ms)); await sleep(5);",
        "const scan = ns.scan.bind(ns); ns.print(scan(), ns.hack.toString());",
        "const server = 'x'; const walk = function visit(name) { if (name) visit(name); }; walk(server);",
        "const events = []; events.push(name, event, status);",
        "const server = 'x'; globalThis.servers = [server]; ns.print(servers);",
        "const server = 'x'; if (typeof servers !== 'undefined') ns.print(servers);",
        "const server = 'x'; try { ns.print(sever); } catch { ns.print(server); }",
        "globalThis.ns = ns; log();\n}\nfunction log() {\n  ns.print(1);",
        "log();\n}\nvar ns;\nfunction log() {\n  ns.print(1);",
        "const table = { ns, go() { return this.ns.pid; } }; table.go();",
    ],
)
def test_what_only_looks_wrong_is_left_alone(body: str) -> None:
    assert check(in_main(body)) == []


def test_parameters_in_types_are_no_names_that_are_read() -> None:
    typed = "type Step = (ns: NS, server: string) => Promise<typeof sever.x>;\n"

    assert check(typed + in_main("const server: Step | null = null; ns.print(server);"), "a.ts") == []


def test_a_walk_that_calls_itself_is_followed() -> None:
    walk = "function walk(ns, host) { for (const next of ns.scan(host)) walk(ns, next); ns.hakc(host); }\n"

    assert [one.code for one in check(walk + in_main("walk(ns, 'home');"))] == ["unknown_api"]


def test_misspelt_server_and_script_are_named_with_the_nearest() -> None:
    world = World(frozenset({"home", "n00dles"}), frozenset({"a.js", "worker.js"}))
    source = in_main('ns.exec("worker.js", "n00dels");\nns.run("wroker.js");')
    found = check_script(source, "a.js", DEFINITIONS, SEARCH, None, world)

    assert [(one.code, one.when) for one in found] == [
        ("missing_server", "maybe"),
        ("missing_script", "maybe"),
    ]
    assert "Nearest: n00dles." in found[0].message
    assert "Nearest: worker.js." in found[1].message
    assert check(source) == []


@pytest.mark.parametrize(
    "source",
    [
        "let a: import('./x').T[] = [];",
        "type Q = import('./x').T<number>;",
        "class A {\n  a = 1\n  [key: string]: any\n}",
        "abstract class A { static [key: string]: number }",
    ],
)
def test_types_that_the_grammar_lacks_are_no_syntax_errors(source: str) -> None:
    assert check(source, "a.ts") == []


def test_a_default_import_needs_a_default_export() -> None:
    source = "import lib from './b.js';\n" + in_main("lib(ns);")
    files = {"a.js": source, "b.js": "export const lib = 1;"}
    (problem,) = check_script(source, "a.js", DEFINITIONS, SEARCH, files)

    assert (problem.code, problem.when) == ("missing_export", "start")
    files["b.js"] = "export default function lib() {}"
    assert check_script(source, "a.js", DEFINITIONS, SEARCH, files) == []


def test_a_main_in_capitals_is_not_called() -> None:
    (problem,) = check("export async function Main(ns) {}")

    assert (problem.code, problem.when) == ("main_not_exported", "start")


def test_imports_are_checked_only_if_the_files_are_known() -> None:
    source = "import { a } from './b.js';\nimport { c } from './gone.js';\n" + in_main("a(c);")
    files = {"a.js": source, "b.js": "export const other = 1;"}

    assert check(source) == []
    found = check_script(source, "a.js", DEFINITIONS, SEARCH, files)
    assert [(one.code, one.line, one.when) for one in found] == [
        ("missing_export", 1, "start"),
        ("missing_import", 2, "start"),
    ]
    assert "b.js does not export a. It exports other." in found[0].message


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("export function main() { hack('n00dles'); }", "missing_ns"),
        ("export function main() { while (true) { } }", "endless_loop"),
        ("export function main() { const a = 1; a = 2; }", "assigned_constant"),
        ("export function main() { const a = 1; const a = 2; }", "syntax_error"),
        ("function main() { }", "main_not_exported"),
        ("export default function main() { }", "main_not_exported"),
    ],
)
def test_a_script_that_does_not_use_the_api_is_checked_for_all_the_rest(source: str, code: str) -> None:
    assert [one.code for one in check(source)] == [code]


def test_a_constant_that_is_assigned_where_the_failure_is_caught_is_left_alone() -> None:
    assert check("export function main() { const a = 1; try { a = 2; } catch { } }") == []
