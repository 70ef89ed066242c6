"""Modules: an import means the file that the game would load, and exports are known by name."""

import pytest

from bridgehead.bitburner.netscript.modules import Module, list_modules, resolve_module
from bridgehead.bitburner.netscript.parsing import Tree


@pytest.mark.parametrize(
    ("importer", "module", "path"),
    [
        ("main.js", "./lib/a.js", "lib/a.js"),
        ("main.js", "lib/a", "lib/a.js"),
        ("main.js", "/lib/a", "lib/a.js"),
        ("lib/deep/main.js", "../a", "lib/a.js"),
        ("lib/main.js", "a", None),
        ("lib/main.js", "./a", "lib/a.js"),
        ("main.js", "lib/b", "lib/b.ts"),
        ("main.js", "lib/b.ts", "lib/b.ts"),
        ("main.js", "lib/b.js", None),
        ("main.js", "../main", None),
        ("main.js", "lib//a", None),
        ("main.js", "a file", None),
        ("main.js", "react", None),
    ],
)
def test_an_import_is_resolved_as_in_the_game(importer: str, module: str, path: str | None) -> None:
    files = {"lib/a.js", "lib/b.ts", "lib/a.jsx", "main.js"}

    assert resolve_module(module, importer, files.__contains__) == path


def test_every_way_to_export_a_name_is_known() -> None:
    source = (
        "export function a() {}\nexport const b = 1, { c, d: [e] } = x;\nexport class F {}\n"
        "export { g as h };\nexport { i } from './i.js';\nexport * as j from './j.js';\nexport default 1;\n"
        "export type K = 1;\nexport interface L {}\nexport enum M { A }\n"
    )

    assert Module(Tree(source, "a.ts")).exports == {*"abceFhijKLM", "default"}


def test_modules_are_listed_as_they_are_written() -> None:
    content = (
        "import { a } from './lib/a.js';\nimport * as b from \"/b\";\nimport { a2 } from './lib/a.js';\n"
        "export { c } from '../c.ts';\nexport * from 'd';\nimport { NS } from '@ns';\nconst e = 'import x';\n"
    )

    assert list_modules(content, "x.ts") == ["./lib/a.js", "/b", "../c.ts", "d"]
