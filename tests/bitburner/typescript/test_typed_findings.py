"""Typed findings: of what TypeScript says, only what matters in the game is shown."""

import pytest

from bridgehead.bitburner.netscript.checking import Problem, check_script
from bridgehead.bitburner.typescript.type_checker import Diagnostic
from bridgehead.bitburner.typescript.typed_findings import find_typed
from tests.bitburner.netscript.checking_scripts import DEFINITIONS, SEARCH, in_main


def interpret(body: str, at: str, code: int, message: str, filename: str = "a.js") -> list[Problem]:
    """Check a script for which TypeScript says something about the last occurrence of a text."""
    source = in_main(body)
    start = source.encode().rindex(at.encode())
    found = [Diagnostic(code, message, start, start + len(at.encode()))]
    return check_script(
        source, filename, DEFINITIONS, SEARCH, None, lambda subject: find_typed(subject, found)
    )


PLAYER = "Property 'mony' does not exist on type 'Player'. Did you mean 'money'?"


@pytest.mark.parametrize(
    ("body", "at", "code", "message", "expected"),
    [
        ("ns.print(taget);", "taget", 2304, "Cannot find name 'taget'.", "undeclared line"),
        ("ns.print(ns.getPlayer().mony);", "mony", 2551, PLAYER, "unknown_property maybe"),
        ("ns.getPlayer().mony();", "mony", 2551, PLAYER, "unknown_property line"),
        (
            "const n = ns.getHackingLevel(); n.toUpperCase();",
            "toUpperCase",
            2339,
            "Property 'toUpperCase' does not exist on type 'number'.",
            "unknown_property line",
        ),
        (
            "await ns.hack(ns.scan());",
            "ns.scan()",
            2345,
            "Argument of type 'string[]' is not assignable to parameter of type 'string'.",
            "wrong_argument line",
        ),
        (
            "ns.print(ns.getHostname()());",
            "ns.getHostname()",
            2349,
            "This expression is not callable.\n  Type 'String' has no call signatures.",
            "not_a_function line",
        ),
        (
            "let a; ns.print(a);",
            "a",
            2588,
            "Cannot assign to 'a' because it is a constant.",
            "assigned_constant line",
        ),
    ],
)
def test_what_fails_or_is_undefined_is_shown(
    body: str, at: str, code: int, message: str, expected: str
) -> None:
    found = interpret(body, at, code, message)

    assert [f"{one.code} {one.when}" for one in found] == [expected]


@pytest.mark.parametrize(
    ("body", "at", "code", "message"),
    [
        ("const n = ns.pid;", "n", 2322, "Type 'number' is not assignable to type 'string'."),
        ("if (typeof taget !== 'undefined') ns.print(taget);", "taget", 2304, "Cannot find name 'taget'."),
        ("try { taget(); } catch {}", "taget", 2304, "Cannot find name 'taget'."),
        ("/** @type {Foo} */ let a;", "Foo", 2304, "Cannot find name 'Foo'."),
        ("const p = ns.getPlayer(); if (p.mony) ns.print(p.mony);", "mony", 2551, PLAYER),
        (
            "const o = { a: 1 }; ns.print(o.b);",
            "b",
            2339,
            "Property 'b' does not exist on type '{ a: number; }'.",
        ),
        ("ns.print(ns.pid.rainbow);", "rainbow", 2339, "Property 'rainbow' does not exist on type 'number'."),
        (
            "await ns.sleep(ns.getHostname());",
            "ns.getHostname()",
            2345,
            "Argument of type 'string' is not assignable to parameter of type 'number'.",
        ),
        ("const f = (a) => a; f();", "f()", 2554, "Expected 1 arguments, but got 0."),
        ("const f = 1; f();", "f", 2349, "This expression is not callable."),
        ("ns.print(1);", "ns", 6133, "'ns' is declared but its value is never read."),
    ],
)
def test_what_works_in_the_game_is_left_out(body: str, at: str, code: int, message: str) -> None:
    assert interpret(body, at, code, message) == []


def test_what_is_wrong_often_is_told_once_and_the_rules_come_first() -> None:
    source = in_main("ns.hakc(taget); ns.print(taget);")
    places = [at for at in range(len(source)) if source.startswith("taget", at)]
    found = [Diagnostic(2304, "Cannot find name 'taget'.", at, at + 5) for at in places]
    hakc = source.index("hakc")
    found.append(Diagnostic(2339, "Property 'hakc' does not exist on type 'NS'.", hakc, hakc + 4))
    problems = check_script(
        source, "a.js", DEFINITIONS, SEARCH, None, lambda subject: find_typed(subject, found)
    )

    assert [one.code for one in problems] == ["unknown_api", "undeclared"]
    assert problems[0].message.startswith("ns.hakc does not exist. Nearest:")
