"""Parsing: what is no script is told with its place, in the characters that a person counts."""

import gc
import sys
import tracemalloc
from types import FrameType

import pytest

from bridgehead.bitburner.netscript.checking import check_script
from bridgehead.bitburner.netscript.modules import list_modules
from bridgehead.bitburner.netscript.parsing import (
    MAX_BYTES,
    MAX_NODES,
    Node,
    TooLarge,
    Tree,
    parse_definitions,
)
from bridgehead.bitburner.netscript.ram import RamRefused, collect_names
from tests.bitburner.netscript.checking_scripts import DEFINITIONS, SEARCH, check, in_main


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("let x = ", 1),
        ("return 5;", 1),
        ("export async function main(ns) {\n  ns.hack('x';\n}", 2),
        ("export async function main(ns) {\n  if (true) {\n}", 1),
        ("const a = [1, 2;\n", 1),
    ],
)
def test_a_syntax_error_is_told_with_its_line_and_column(source: str, line: int) -> None:
    (problem,) = check(source)

    assert problem.code == "syntax_error"
    assert problem.line >= line
    assert problem.column >= 1


def test_columns_count_characters_and_not_bytes() -> None:
    (problem,) = check(in_main("const é = 'ü'; ns.hakc();"))

    assert problem.column == "const é = 'ü'; ns.".__len__() + 1


@pytest.mark.parametrize(
    ("source", "filename"),
    [
        ("export type * from './types';\nexport const a = 1;\n", "a.ts"),
        ("export default function() { return 1; } export const a = 2;\n", "a.js"),
    ],
)
def test_what_the_game_accepts_and_the_grammar_does_not_is_no_error(source: str, filename: str) -> None:
    assert check(source, filename) == []


def test_a_script_that_was_read_leaves_nothing_to_the_garbage_collector() -> None:
    """Collecting a hundred thousand nodes at once would stop every client."""
    source = in_main("  ns.tprint(ns.args[0]);\n" * 50)
    files = {"a.js": 'import { main } from "b.js";\n' + source, "b.js": source}
    gc.collect()
    gc.disable()
    try:
        check_script(files["a.js"], "a.js", DEFINITIONS, SEARCH, files)
        list_modules(files["a.js"], "a.js")
        collect_names("a.js", files, "home")
        assert gc.collect() < len(Tree(source, "a.js").nodes) / 10
    finally:
        gc.enable()


def test_a_source_that_was_parsed_does_not_stay_in_memory() -> None:
    """tree-sitter 0.26 keeps a reference to every piece that it reads."""
    source = "let a = 1;\n" * 5000
    Tree("let a = 1;", "a.js").close()  # loads the grammar
    tracemalloc.start()
    try:
        for _ in range(3):
            Tree(source, "a.js").close()
        assert tracemalloc.get_traced_memory()[0] < len(source) / 2
    finally:
        tracemalloc.stop()


def test_a_long_source_is_parsed_in_pieces_between_which_other_threads_can_run() -> None:
    """The interpreter changes threads where Python code runs: while one piece after the other is read."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    source = "a[{(`${" * 1000
    sys.setprofile(count)
    try:
        parse_definitions(source.encode())
    finally:
        sys.setprofile(None)
    assert calls > len(source) / 1024


@pytest.mark.parametrize("source", ["//" + "x" * MAX_BYTES, "{}" * (MAX_NODES // 3)], ids=["long", "dense"])
def test_a_source_that_would_fill_the_memory_is_not_read(source: str) -> None:
    with pytest.raises(TooLarge):
        Tree(source, "a.js")
    with pytest.raises(RamRefused, match=r"a\.js is too large to be read here"):
        collect_names("a.js", {"a.js": source}, "home")
    assert list_modules('import "b.js";' + source, "a.js") == []
    (problem,) = check(source)
    assert problem.code == "not_checked"


def test_a_tree_tells_how_deep_its_nodes_are_nested() -> None:
    tree = Tree("f([[1]]);\ng();\n", "a.js")

    def count_parents(node: Node) -> int:
        return 0 if node.parent is None else 1 + count_parents(node.parent)

    assert tree.depth == max(map(count_parents, tree.nodes))
