"""Scripts whose RAM cost a real game has calculated, and what it said: owns collecting both.

The scripts are those of the corpus, of `real_scripts`, and of the test of the references. The verdicts are in
ram_verdicts.json; `python -m bench.bitburner.verdicts` asks a running game for them again.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from tests.bitburner.netscript import corpus_cases, real_scripts

FILE = Path(__file__).with_name("ram_verdicts.json")
HELPER = "export function helper(ns) { ns.nuke('x'); }\n"
LIBRARY = "export function all(ns) { ns.scp('a', 'b'); }\nexport const one = (ns) => ns.ls('x');\n"
REFERENCES = [
    ("js", "export async function main(ns) { x.hack; }", "hack"),
    ("js", "const hack = 1; const o = { hack };", "hack"),
    ("js", "const o = { hack: 1, scan() {}, get exec() { return 1; } };", ""),
    ("js", "const { hack, scan: s } = ns; s();", ""),
    ("js", "function f(hack, scan = 1, ...exec) {}", ""),
    ("js", "function f(a = hack) {}", "hack"),
    ("js", "hack = 1; scan += 2;", ""),
    ("js", "ns.hack = 1;", "hack"),
    ("js", "hack++;", "hack"),
    ("js", "for (hack of []) {} for (const scan of []) {}", "hack"),
    ("js", "try {} catch (hack) {}", ""),
    ("js", "hack: for (;;) { break hack; }", ""),
    ("js", "ns['hack'](); ns[`scan`]();", ""),
    ("js", "class A { #hack = 1; f() { return this.#hack; } }", ""),
    ("js", "class hack { scan = 1; exec() {} static { ns.grow(); } }", "grow"),
    ("js", "class A extends hack {}", "hack"),
    ("js", "`${ns.hack()}`; tag`scan ${exec}`;", "exec hack"),
    ("js", "function never() { ns.exec(); }", "exec"),
    ("js", "function a() { function b() { ns.exec(); } }", "exec"),
    ("js", "const a = () => ns.exec();", "exec"),
    ("js", "a.toString(); a.hasOwnProperty('x'); a.constructor;", ""),
    ("js", "document.title; window.x; globalThis['document'];", "document window"),
    ("js", "ns.hacknet.numNodes();", "hacknet"),
    ("js", "function f() { new.target; import.meta.x; }", ""),
    ("js", "ns?.hack?.();", "hack"),
    ("js", "(0, ns.hack)();", "hack"),
    ("js", "const o = { [hack]: 1 }; class A { [scan] = 1; }", "hack scan"),
    ("js", "const { a = hack } = ns; const [b = scan] = [];", "hack scan"),
    ("js", "[hack, ns.scan] = [];", "scan"),
    ("js", "f(...hack); const {...scan} = ns;", "hack"),
    ("js", "function* g() { yield ns.hack(); }", "hack"),
    ("js", "export default () => ns.exec();", "exec"),
    ("js", "function a() { ns.exec(); } export { a as b };", "exec"),
    ("ts", "let a: hack = 1 as scan; type exec = typeof grow; interface weaken { hack: 1 } f<hack>(x);", ""),
    ("ts", "(hack as any); scan!;", "hack scan"),
    ("ts", "hack satisfies any; <any>scan;", ""),
    ("ts", "enum E { A = hack }", ""),
    ("ts", "namespace N { ns.hack(); function f() { ns.exec(); } }", "exec hack"),
    ("ts", "class A { constructor(private hack = scan, exec = grow) {} }", "grow"),
    ("ts", "abstract class A { abstract hack(): void; scan(): void {} }", ""),
    ("ts", "function f(hack: string): void; function f(a: any) { scan; }", "scan"),
]
"""Extension, source, and the names that cost something."""


class Case(Struct, frozen=True):
    """A script with the files that it can import."""

    filename: str
    files: dict[str, str]


class Verdicts(Struct, frozen=True):
    """What a game said: the cost in GB, or None where it calculates none."""

    game: str
    costs: dict[str, float | None]


def list_cases() -> dict[str, Case]:
    """Return all cases by a name."""
    corpus = {
        f"{kind}/{case.filename}": Case(case.filename, case.files)
        for kind in ("right", "wrong")
        for case in corpus_cases.load(kind)
    }
    scripts = {}
    for name, source in real_scripts.list_scripts().items():
        folder, _, style = name.partition("/")
        imported = {f"{folder}/lib/helper.js": HELPER, "lib/all.js": LIBRARY}
        scripts[name] = Case(name, {name: source, **(imported if style == "imports.js" else {})})
    references = {
        f"reference/{number}.{extension}": Case(f"a.{extension}", {f"a.{extension}": source})
        for number, (extension, source, _) in enumerate(REFERENCES)
    }
    return corpus | scripts | references


def load_verdicts() -> Verdicts:
    """Return what the game said."""
    return msgspec.json.decode(FILE.read_bytes(), type=Verdicts)
