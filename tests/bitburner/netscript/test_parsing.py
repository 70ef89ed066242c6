"""Parsing: what is no script is told with its place, in the characters that a person counts."""

import pytest

from tests.bitburner.netscript.checking_scripts import check, in_main


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
