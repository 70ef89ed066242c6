"""Search: the right declaration first, for symbols and for the words that players use."""

import pytest

from bench.bitburner.questions import count_answers
from bridgehead.bitburner.netscript.definitions import Definitions
from bridgehead.bitburner.netscript.search import DefinitionSearch
from bridgehead.bitburner.simulator.definitions import definitions
from tests.bitburner.netscript.questions import QUESTIONS


@pytest.fixture(scope="module")
def search() -> DefinitionSearch:
    return DefinitionSearch(Definitions(definitions()))


def test_the_right_answer_is_first_in_nine_of_ten_and_among_three_in_nearly_all(
    search: DefinitionSearch,
) -> None:
    places = []
    for query, expected in QUESTIONS:
        found = [one.symbol for one in search.find(query, 8).declarations]
        places.append(next((n for n, one in enumerate(found) if one in expected.split("|")), 99))

    assert len(QUESTIONS) >= 60
    assert sum(place == 0 for place in places) >= 0.9 * len(QUESTIONS)
    assert sum(place < 3 for place in places) >= 0.98 * len(QUESTIONS)


@pytest.mark.parametrize("query", ["ns.hack", "NS.hack", "hack", "NS.hack()", "ns.hack()"])
def test_an_exact_symbol_comes_first_however_it_is_written(search: DefinitionSearch, query: str) -> None:
    assert search.find(query, 3).declarations[0].symbol == "NS.hack"


def test_a_path_as_scripts_write_it_is_a_symbol(search: DefinitionSearch) -> None:
    assert search.find("ns.stock.getPrice", 1).declarations[0].symbol == "TIX.getPrice"
    assert search.find("singularity.connect", 1).declarations[0].symbol == "Singularity.connect"


def test_a_list_of_symbols_finds_each(search: DefinitionSearch) -> None:
    found = search.find("hack, ns.grow, NS.weaken()", 8)

    assert [one.symbol for one in found.declarations][:3] == ["NS.hack", "NS.grow", "NS.weaken"]


def test_a_miss_offers_near_names(search: DefinitionSearch) -> None:
    found = search.find("ns.hakc", 3)

    assert found.declarations == []
    assert "hack" in found.near


def test_a_hacking_goal_brings_no_gang_functions(search: DefinitionSearch) -> None:
    goal = "hack all servers for money and keep their security low"
    found = [one.symbol for one in search.find(goal, 12).declarations]

    assert not any(symbol.startswith("Gang") for symbol in found)
    assert any(symbol in ("NS.hack", "NS.getServerMoneyAvailable") for symbol in found)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("ProcessInfo", ["ProcessInfo", "ns.ps"]),
        ("Player", ["Player", "ns.getPlayer", "ns.formulas.mockPlayer"]),
        ("ns.getPlayer", ["ns.getPlayer"]),
    ],
)
def test_a_type_comes_with_the_functions_that_return_it(
    search: DefinitionSearch, query: str, names: list[str]
) -> None:
    assert [search.name_of(one) for one in search.find(query, 3).declarations] == names


def test_questions_of_players_find_their_answers(search: DefinitionSearch) -> None:
    first, among, asked = count_answers(search, "tuned", "later", "fresh", "newest", "held out")

    assert first / asked >= 0.85
    assert among / asked >= 0.95


def test_questions_that_nothing_was_tuned_for_find_most_of_their_answers(search: DefinitionSearch) -> None:
    first, among, asked = count_answers(search, "held out later")

    assert first / asked >= 0.5
    assert among / asked >= 0.7


def test_questions_by_people_who_never_saw_the_search_find_their_answers(search: DefinitionSearch) -> None:
    first, among, asked = count_answers(search, "independent", "independent, later")

    assert first / asked >= 0.85
    assert among / asked >= 0.93


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("my karma", "getPlayer"),  # a field of what it returns
        ("strength and agility", "getPlayer"),  # a field of a field
        ("mug someone", "singularity.commitCrime"),  # a value of what it takes
        ("hiring employees", "corporation.hireEmployee"),  # inherited, and another form of the word
    ],
)
def test_a_function_is_found_by_what_it_takes_and_returns(
    search: DefinitionSearch, query: str, path: str
) -> None:
    found = [search.name_of(one) for one in search.find(query, 3).declarations]

    assert f"ns.{path}" in found


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("do I have root access", "hasRootAccess"),
        ("upgrade the ram of home", "upgradeHomeRam"),
        ("cost of upgrading the ram of home", "getUpgradeHomeRamCost"),
    ],
)
def test_a_question_and_an_action_find_different_functions(
    search: DefinitionSearch, query: str, name: str
) -> None:
    assert search.find(query, 1).declarations[0].name == name


def test_of_two_functions_the_one_whose_name_adds_nothing_is_meant(search: DefinitionSearch) -> None:
    assert search.find("gang recruit member", 1).declarations[0].symbol == "Gang.recruitMember"


def test_a_member_of_a_namespace_is_named_as_scripts_write_it(search: DefinitionSearch) -> None:
    names = [
        search.name_of(search.find(query, 1).declarations[0]) for query in ("TIX.buyStock", "hack", "Player")
    ]

    assert names == ["ns.stock.buyStock", "ns.hack", "Player"]


def test_words_that_only_examples_have_find_nothing() -> None:
    text = """
interface NS {
  /** Prints a line. @example foo("bar"); */
  print(text: string): void;
}
"""
    search = DefinitionSearch(Definitions(text))

    assert search.find("xyzzy foo", 5).declarations == []
    assert [found.name for found in search.find("foo print", 5).declarations] == ["print"]
