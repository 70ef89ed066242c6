"""Words: what a player says finds the function whose name has none of those words."""

import pytest

from bridgehead.bitburner.netscript.words import STOP, SYNONYMS
from tests.bitburner.netscript.checking_scripts import SEARCH


def first(query: str) -> str:
    return SEARCH.find(query, 1).declarations[0].name


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("pause the script", "sleep"),
        ("erase a file", "rm"),
        ("steal money", "hack"),
        ("download a url", "wget"),
        ("neighbours of a host", "scan"),
        ("popup notification", "toast"),
    ],
)
def test_a_players_word_stands_for_the_apis(said: str, name: str) -> None:
    assert first(said) == name


def test_words_that_say_nothing_do_not_change_what_is_found() -> None:
    assert first("how do I use the function to sleep") == first("sleep") == "sleep"


def test_no_word_of_the_api_stands_for_itself_or_is_left_out_of_a_search() -> None:
    assert [word for word, said in SYNONYMS.items() if word in said] == []
    assert not STOP & (SYNONYMS.keys() - {"at"})  # `at`, as in `atExit`
