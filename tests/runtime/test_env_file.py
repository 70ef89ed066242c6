"""Env file: what it adds to the environment, what it must not, and what cannot be read."""

import pytest

from bridgehead.mercury.settings import MercurySettings
from bridgehead.runtime.env_file import EnvFileError, merge, narrow, parse
from bridgehead.runtime.settings import PATH, TEXT, Setting, Settings


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
        ("A=one\u2028B=two", "one\u2028B=two"),
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

    assert str(error.value) == ".env, line 2 is not NAME=value. Fix the line, or comment it out with #."


def test_the_environment_wins() -> None:
    assert merge({"A": "1"}, {"A": "2", "B": "3"}) == {"A": "1", "B": "3"}


class Mail(Settings):
    key = Setting("MAIL_KEY", TEXT, None, "The key.", secret=True)
    key_file = Setting("MAIL_KEY_FILE", PATH, None, "A file with the key.")
    url = Setting("MAIL_URL", TEXT, None, "Where to.", receives=("MAIL_KEY", "MAIL_KEY_FILE"))


def narrowed(environment: dict[str, str], found: dict[str, str]) -> dict[str, str]:
    return narrow(merge(environment, found), Mail.declared)


def test_a_part_sees_what_it_has_declared_and_where_that_came_from() -> None:
    environment = narrow(
        merge({"MAIL_KEY": "mine", "OTHER_KEY": "theirs"}, {"MAIL_KEY_FILE": "k"}), Mail.declared
    )

    assert environment == {"MAIL_KEY": "mine", "MAIL_KEY_FILE": "k"}
    assert environment.from_file == {"MAIL_KEY_FILE"}


def test_an_address_counts_with_a_key_of_the_same_file() -> None:
    found = {"MAIL_KEY": "sk_file", "MAIL_URL": "https://file.example"}

    assert narrowed({}, found) == found


@pytest.mark.parametrize("name", ["MAIL_KEY", "MAIL_KEY_FILE"])
def test_an_address_of_a_file_gets_no_key_of_the_environment(name: str) -> None:
    assert narrowed({name: "mine"}, {"MAIL_URL": "https://file.example"}) == {name: "mine"}


def test_an_address_of_a_file_gets_no_key_of_a_third_file() -> None:
    found = {"MAIL_KEY_FILE": "~/.key", "MAIL_URL": "https://file.example"}

    assert narrowed({}, found) == {"MAIL_KEY_FILE": "~/.key"}


def test_an_address_of_the_environment_stays() -> None:
    environment = {"MAIL_KEY": "mine", "MAIL_URL": "https://mine.example"}

    assert narrowed(environment, {"MAIL_URL": "https://file.example"}) == environment


def test_the_key_of_the_mercury_api_is_guarded_like_this() -> None:
    assert MercurySettings.api_url.receives == ("MERCURY_API_KEY", "MERCURY_API_KEY_FILE")
