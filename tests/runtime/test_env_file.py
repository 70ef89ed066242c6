"""Env file: what it adds to the environment, what it must not, and what cannot be read."""

import pytest

from bridgehead.runtime.env_file import EnvFileError, merged, parse

KEY, ADDRESS, KEY_FILE = "MERCURY_API_KEY", "MERCURY_API_URL", "MERCURY_API_KEY_FILE"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=1", "1"),
        ("  export A = 1  ", "1"),
        ("A=", ""),
        ("A='one # two'", "one # two"),
        ('A="one two"', "one two"),
        ("A=one # two", "one"),
        ("A=a#b", "a#b"),
        ("A='", "'"),
        ("A=b=c", "b=c"),
        ("\ufeffA=1", "1"),
    ],
)
def test_a_line_gives_a_value(line: str, value: str) -> None:
    assert parse(line) == {"A": value}


def test_a_value_in_quotes_may_go_on_over_lines() -> None:
    text = "A=\"-----BEGIN-----\nMIIB/x==\n-----END-----\"\nB=it's\n# C=\"\nD='one' # two\n"

    assert parse(text) == {"A": "-----BEGIN-----\nMIIB/x==\n-----END-----", "B": "it's", "D": "one"}


def test_empty_lines_and_comments_say_nothing_and_the_last_of_two_counts() -> None:
    assert parse("\n# A=1\n  \nA=2\r\nA=3\n") == {"A": "3"}


@pytest.mark.parametrize("line", ["nonsense", "=1", "two words=1", "1A=2"])
def test_another_line_is_named_by_its_number_and_not_repeated(line: str) -> None:
    with pytest.raises(EnvFileError) as error:
        parse(f"A=1\n{line}\n")

    assert str(error.value) == ".env, line 2 is not NAME=value. Mend it, or put a # in front of it."


def test_the_environment_wins() -> None:
    assert merged({"A": "1"}, {"A": "2", "B": "3"}) == {"A": "1", "B": "3"}


def test_an_address_counts_with_a_key_of_the_same_file() -> None:
    found = {KEY: "sk_file", ADDRESS: "https://file.example"}

    assert merged({}, found) == found


@pytest.mark.parametrize("name", [KEY, KEY_FILE])
def test_an_address_of_a_file_gets_no_key_of_the_environment(name: str) -> None:
    assert merged({name: "mine"}, {ADDRESS: "https://file.example"}) == {name: "mine"}


def test_an_address_of_a_file_gets_no_key_of_a_third_file() -> None:
    found = {KEY_FILE: "~/.key", ADDRESS: "https://file.example"}

    assert merged({}, found) == {KEY_FILE: "~/.key"}


def test_an_address_of_the_environment_stays() -> None:
    environment = {KEY: "mine", ADDRESS: "https://mine.example"}

    assert merged(environment, {ADDRESS: "https://file.example"}) == environment
