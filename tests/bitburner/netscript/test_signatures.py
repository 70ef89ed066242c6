"""Signatures: what a function takes, as far as a literal can contradict it."""

import pytest

from bridgehead.bitburner.netscript.definitions import Definitions
from bridgehead.bitburner.netscript.parsing import Node, Tree
from bridgehead.bitburner.netscript.signatures import Signature, Signatures, fits

TEXT = """
export declare enum City { Aevum = "Aevum", NewTokyo = "New Tokyo", Quarry = "Miner's Quarry" }
export type Place = City | `${City}`;
export type Wait = number | Options;
export interface Options { ms: number; }
export interface NS {
  go(place: Place): boolean;
  wait(time: Wait, note?: string, ...rest: string[]): Promise<true>;
  both(a: string): void;
  both(a: string, b: number): void;
  history(board: string, playAsWhite = false): void;
  generic<T>(value: T): T;
  readonly mode: "slow" | "fast";
}
"""
SIGNATURES = Signatures(Definitions(TEXT))


def only(path: str) -> Signature:
    (signature,) = SIGNATURES.of(path)
    return signature


def literal(text: str) -> Node:
    tree = Tree(f"x = {text};", "a.js")
    node = next(node for node in tree.nodes if node.type == "assignment_expression").field("right")
    assert node is not None
    return node


def test_required_parameters_are_counted_over_all_overloads() -> None:
    assert (only("wait").required, only("wait").has_rest, only("wait").returns_promise) == (1, True, True)
    assert [one.required for one in SIGNATURES.of("both")] == [1, 2]
    assert only("history").required == 1  # a default, as the definitions of 2.x write it


def test_value_of_an_enum_may_have_an_apostrophe() -> None:
    (place,) = only("go").parameters

    assert fits(literal('"Miner\'s Quarry"'), place.kinds)
    assert not fits(literal('"Miner"'), place.kinds)
    assert SIGNATURES.of("mode") == SIGNATURES.of("gone") == []


@pytest.mark.parametrize(
    ("path", "argument", "expected"),
    [
        ("go", "'Aevum'", "fits"),
        ("go", "'new-tokyo'", "fits"),
        ("go", "'Paris'", "does not"),
        ("go", "5", "does not"),
        ("go", "name", "fits"),
        ("wait", "5", "fits"),
        ("wait", "'5'", "fits"),
        ("wait", "'5 minutes'", "fits"),
        ("wait", "'soon'", "does not"),
        ("wait", "{ ms: 1 }", "fits"),
        ("wait", "true", "does not"),
        ("both", "5", "fits"),
        ("both", "[]", "does not"),
        ("both", "() => 1", "does not"),
        ("generic", "[]", "fits"),
    ],
)
def test_a_literal_fits_or_not(path: str, argument: str, expected: str) -> None:
    does_fit = fits(literal(argument), SIGNATURES.of(path)[0].parameters[0].kinds)

    assert does_fit is (expected == "fits")
