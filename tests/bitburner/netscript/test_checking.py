"""Checking: what is wrong in a script is named, with its place and what to write instead."""

from bridgehead.bitburner.netscript.checking import check_script
from bridgehead.bitburner.netscript.definitions import Definitions
from bridgehead.bitburner.netscript.search import DefinitionSearch
from tests.bitburner.netscript.checking_scripts import check, in_main


def test_a_function_that_does_not_exist_is_named_with_the_nearest_and_their_signatures() -> None:
    (problem,) = check(in_main("  const money = ns.getServerMoney('n00dles');"))

    assert (problem.code, problem.line, problem.column) == ("unknown_api", 2, 20)
    assert "ns.getServerMoney does not exist" in problem.message
    assert "ns.getServerMoneyAvailable(host: string): number" in problem.message


def test_ns1_scripts_and_empty_definitions_are_not_checked() -> None:
    assert check("hakc('n00dles');", "a.script") == []
    empty = Definitions("")
    assert check_script(in_main("ns.hakc();"), "a.js", empty, DefinitionSearch(empty)) == []
