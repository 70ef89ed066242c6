"""Checking: what does not exist is named with what does, and real scripts raise no false alarm."""

from bridgehead.bitburner.netscript.checking import check_script
from bridgehead.bitburner.netscript.definitions import Definitions
from bridgehead.bitburner.netscript.search import DefinitionSearch
from tests.bitburner.netscript.checking_scripts import check, in_main, unknown
from tests.bitburner.netscript.real_scripts import list_scripts


def test_a_function_that_does_not_exist_is_named_with_the_nearest_and_their_signatures() -> None:
    (problem,) = check(in_main("  const money = ns.getServerMoney('n00dles');"))

    assert (problem.code, problem.line, problem.column) == ("unknown_api", 2, 20)
    assert "ns.getServerMoney does not exist" in problem.message
    assert "ns.getServerMoneyAvailable(host: string): number" in problem.message


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


def test_ns1_scripts_and_empty_definitions_are_not_checked() -> None:
    assert check("hakc('n00dles');", "a.script") == []
    empty = Definitions("")
    assert check_script(in_main("ns.hakc();"), "a.js", empty, DefinitionSearch(empty)) == []
