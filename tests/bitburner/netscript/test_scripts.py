"""Scripts: the API is followed under whatever name a script has it, and no further than is certain.

What does not exist is named with what does, and real scripts raise no false alarm.
"""

import pytest

from tests.bitburner.netscript.checking_scripts import check, in_main, unknown
from tests.bitburner.netscript.real_scripts import list_scripts


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (in_main("await ns.hackAll('x');"), ["ns.hackAll"]),
        (in_main("const {hack, grwo} = ns; await hack('x');"), ["ns.grwo"]),
        (in_main("const {singularity: s} = ns; s.conect('x');"), ["ns.singularity.conect"]),
        (in_main("const s = ns.singularity; s.conect('x'); s.connect('x');"), ["ns.singularity.conect"]),
        (in_main("ns['hakc']('x'); ns['hack']('x');"), ["ns.hakc"]),
        (in_main("ns.connect('x');"), ["ns.connect"]),
        (in_main("ns.formulas.hacking.hackChanse();"), ["ns.formulas.hacking.hackChanse"]),
        ("export const main = async (bb) => { bb.hakc('x'); };", ["ns.hakc"]),
        (in_main("work(ns);") + "function work(bb) { bb.hakc(); }", ["ns.hakc"]),
        ("/** @param {NS} api */\nfunction f(api) { api.hakc(); }", ["ns.hakc"]),
        (
            "let ns;\nexport async function main(n) { ns = n; go(); }\nfunction go() { ns.hakc(); }",
            ["ns.hakc"],
        ),
        ("class A { constructor(ns) { this.ns = ns; }\n go() { this.ns.hakc(); } }", ["ns.hakc"]),
        ("export async function main({hack, hakc}) { await hack('x'); }", []),
        ("export async function main(ns) { const f = ns.hakc; f(); }", ["ns.hakc"]),
    ],
)
def test_the_api_is_followed_under_whatever_name_it_has(source: str, expected: list[str]) -> None:
    if "main({" in source:
        assert unknown(source) in ([], ["ns.hakc"])
    else:
        assert unknown(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("export async function main(ns: NS): Promise<void> { ns.hakc('x'); }", ["ns.hakc"]),
        ("export async function main(api: NS) { (api as NS).hakc('x'); api!.hakc('y'); }", ["ns.hakc"]),
        ("class A { constructor(private ns: NS) {}\n go() { this.ns.hakc(); } }", ["ns.hakc"]),
        ("class A { ns: NS;\n go() { this.ns.hakc(); } }", ["ns.hakc"]),
        ("function f(ns: Database) { ns.query(); }", []),
        (
            "enum E { A }\ninterface I { ns: number }\nexport async function main(ns: NS) { ns.hack(E.A); }",
            [],
        ),
    ],
)
def test_typescript_is_followed_by_its_types(source: str, expected: list[str]) -> None:
    assert unknown(source, "a.ts") == expected


@pytest.mark.parametrize(
    "body",
    [
        "// ns.hakc()\n/* ns.hakc() */ const text = 'ns.hakc()'; const t = `ns.hakc()`;",
        "if (ns.hakc) ns.print('x');",
        "ns.hakc?.('x');",
        "const f = ns.hakc ?? ns.hack;",
        "if (typeof ns.hakc === 'function') ns.print(1);",
        "const has = 'hakc' in ns; ns.toString(); ns.hasOwnProperty('x');",
        "const name = 'sleep'; ns[name]('x');",
        "ns.args[0]; ns.pid; ns.enums.CityName.Aevum; ns.heart.break();",
        "const names = [{ns: 1}].map((ns) => ns.foo);",
        "{ const ns = { foo() {} }; ns.foo(); }",
        "const server = window.other.getServer('x'); server.anything.at.all();",
        "let api = ns; api = {hakc() {}}; api.hakc();",
    ],
)
def test_what_is_not_certain_is_left_alone(body: str) -> None:
    assert check(in_main(body)) == []


def test_two_hundred_scripts_as_people_write_them_raise_no_alarm() -> None:
    scripts = list_scripts()
    alarms = {name: check(source, name) for name, source in scripts.items()}

    assert len(scripts) >= 200
    assert {name: found for name, found in alarms.items() if found} == {}


def test_the_same_scripts_with_one_wrong_name_raise_one_alarm() -> None:
    missed = []
    for name, source in list_scripts().items():
        wrong = source.replace("tprint(", "tprnt(", 1)
        if "ns.tprint(" in source.split("tprint(")[0] + "tprint(" and unknown(wrong, name) != ["ns.tprnt"]:
            missed.append(name)

    assert missed == []
