"""Settings: the environment gives a value in range, a default, or an error that says what would be right."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import settings as examined
from hypothesis import strategies as st

from bridgehead.runtime.settings import (
    BYTES,
    FLAG,
    PATH,
    TEXT,
    WORDS,
    Kind,
    Setting,
    SettingError,
    Settings,
    choice,
    count_edits,
    find_unused,
    hide_credentials,
    number,
    whole,
)
from tests.support.waiting import PATIENCE

MOST_BYTES = 2**53
ODD_NUMBERS = [
    *("nan", "-nan", "inf", "-Infinity", "1e400", "-1e400", "1e-400", "9" * 5_000),
    *("١٢", "\uff11\uff12", "½", "1_000", "1__0", "_1", "0x10", "1.5", "1,5", "1 000"),
    *("-0", "+7", "--1", "1e", ".", "-", "\ud800", "1\x00"),
]
UNITS = ["", "b", "kb", "MB", " gb", "KiB", "mib", "GIB", "k", "bb", "ib", "tb", "kb b", "\tmb", "K"]

numbers = st.one_of(
    st.sampled_from(ODD_NUMBERS),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=20),
    st.text("0123456789_.eE+-", max_size=20),
)
sizes = st.tuples(numbers, st.sampled_from(UNITS)).map("".join)


class Example(Settings):
    year = Setting("EXAMPLE_YEAR", whole(2015, 2099), 2025, "The event that is served.")
    rate = Setting("EXAMPLE_RATE", number(0, 10.5), 1.0, "Calls a second.")
    size = Setting("EXAMPLE_SIZE", BYTES, 65_536, "The most that is read.")
    level = Setting("EXAMPLE_LEVEL", choice("debug", "Info"), "Info", "From where on to log.")
    live = Setting("EXAMPLE_LIVE", FLAG, default=False, about="Whether it is for real.")
    hosts = Setting("EXAMPLE_HOSTS", WORDS, ("localhost",), "Who may connect.")
    place = Setting("EXAMPLE_PLACE", PATH, None, "Where files are.", shown="the user's own")
    key = Setting("EXAMPLE_KEY", TEXT, None, "The key to the far side.", secret=True)
    pin = Setting("EXAMPLE_PIN", whole(0, 9999), 0, "A number that nobody should know.", secret=True)


def read(kind: Kind[Any], text: str) -> Any:
    return Setting("NAME", kind, None, "").read({"NAME": text})


def test_what_is_not_set_or_set_to_nothing_takes_its_default() -> None:
    settings = Example({"EXAMPLE_YEAR": "", "EXAMPLE_RATE": "  "})

    assert (settings.year, settings.rate, settings.size) == (2025, 1.0, 65_536)
    assert (settings.level, settings.live, settings.hosts) == ("Info", False, ("localhost",))
    assert (settings.place, settings.key, settings.pin) == (None, None, 0)
    assert settings.configured == frozenset()


def test_what_is_set_is_read_and_known_to_be_given(tmp_path: Path) -> None:
    settings = Example(
        {
            "EXAMPLE_YEAR": " 2024 ",
            "EXAMPLE_RATE": "0.5",
            "EXAMPLE_SIZE": "1.5mb",
            "EXAMPLE_LEVEL": "INFO",
            "EXAMPLE_LIVE": "Yes",
            "EXAMPLE_HOSTS": " a, ,b,",
            "EXAMPLE_PLACE": str(tmp_path),
            "EXAMPLE_KEY": "xyz",
            "ANOTHER": "is not ours",
        }
    )

    assert (settings.year, settings.rate, settings.size) == (2024, 0.5, 1_572_864)
    assert (settings.level, settings.live, settings.hosts) == ("Info", True, ("a", "b"))
    assert (settings.place, settings.key, settings.pin) == (tmp_path, "xyz", 0)
    assert settings.configured == set(settings.values) - {"EXAMPLE_PIN"}


def test_the_environment_is_read_once() -> None:
    environment = {"EXAMPLE_YEAR": "2024"}
    settings = Example(environment)

    environment["EXAMPLE_YEAR"] = "2023"

    assert settings.year == 2024


def test_a_setting_stays_as_it_was_read() -> None:
    settings = Example({})

    with pytest.raises(AttributeError, match="EXAMPLE_YEAR is read once"):
        settings.year = 2024

    assert settings.year == 2025


def test_a_large_limit_is_written_out() -> None:
    assert number(0.001, 1_000_000_000).wanted == "a number from 0.001 to 1000000000"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("EXAMPLE_YEAR", "2014", "is '2014': expected a whole number from 2015 to 2099."),
        ("EXAMPLE_RATE", "nan", "is 'nan': expected a number from 0 to 10.5."),
        ("EXAMPLE_SIZE", "big", "is 'big': expected a size such as 65536, 64kb or 1mb."),
        ("EXAMPLE_LEVEL", "loud", "is 'loud': expected one of debug, Info."),
        ("EXAMPLE_LIVE", "2", "is '2': expected 1 or 0 (also true or false, yes or no, on or off)."),
        ("EXAMPLE_YEAR", "two\nlines", r"is 'two\nlines': expected a whole number from 2015 to 2099."),
    ],
)
def test_a_bad_value_is_refused_by_a_line_that_names_it_and_what_would_be_right(
    name: str, value: str, said: str
) -> None:
    with pytest.raises(SettingError) as caught:
        Example({name: value})

    assert str(caught.value) == f"{name} {said}"
    assert caught.value.name == name


@pytest.mark.skipif(sys.platform != "win32", reason="only Windows has such paths")
@pytest.mark.parametrize("path", [r"\\server\share\a folder", r"\\?\C:\long", r"D:\Jürgen\a b", "C:/x"])
def test_a_drive_a_share_and_a_long_path_are_taken_as_they_are(path: str) -> None:
    assert PATH.parse(path) == Path(path)
    assert str(PATH.parse(path)) == path.replace("/", "\\")


def test_a_path_of_windows_is_shown_as_it_was_written() -> None:
    path = r"\\server\a share\cert.pem"
    assert str(SettingError("CERT", path, "a file")) == f"CERT is '{path}': expected a file."


def test_a_bad_secret_is_refused_without_being_shown() -> None:
    with pytest.raises(SettingError) as caught:
        Example({"EXAMPLE_PIN": "123456"})

    assert str(caught.value) == ("EXAMPLE_PIN is not a valid value: expected a whole number from 0 to 9999.")


def test_a_summary_shows_every_value_but_no_secret() -> None:
    given_ = {"EXAMPLE_LIVE": "on", "EXAMPLE_HOSTS": "a,b", "EXAMPLE_KEY": "xyz", "EXAMPLE_PIN": "1234"}

    assert dict(Example(given_).summary()) == {
        "EXAMPLE_YEAR": "2025",
        "EXAMPLE_RATE": "1.0",
        "EXAMPLE_SIZE": "65536",
        "EXAMPLE_LEVEL": "Info",
        "EXAMPLE_LIVE": "1",
        "EXAMPLE_HOSTS": "a,b",
        "EXAMPLE_PLACE": "",
        "EXAMPLE_KEY": "(set)",
        "EXAMPLE_PIN": "(set)",
    }


def test_a_summary_tells_a_secret_that_is_not_set() -> None:
    assert dict(Example({}).summary())["EXAMPLE_KEY"] == ""


def test_only_what_differs_from_its_default_is_a_change() -> None:
    assert Example({}).changes() == {}
    assert Example({"EXAMPLE_KEY": "sk-1"}).changes() == {"EXAMPLE_KEY": "(set)"}


def test_a_declaration_is_there_to_make_documents_from() -> None:
    assert [(s.name, s.shown_default) for s in Example.declared] == [
        ("EXAMPLE_YEAR", "2025"),
        ("EXAMPLE_RATE", "1.0"),
        ("EXAMPLE_SIZE", "65536"),
        ("EXAMPLE_LEVEL", "Info"),
        ("EXAMPLE_LIVE", "0"),
        ("EXAMPLE_HOSTS", "localhost"),
        ("EXAMPLE_PLACE", "the user's own"),
        ("EXAMPLE_KEY", ""),
        ("EXAMPLE_PIN", "0"),
    ]
    assert Example.year is Example.declared[0]
    assert Example.year.about == "The event that is served."


class Logging(Settings):
    level = Setting("LEVEL", choice("debug", "info"), "info", "From where on to log.")
    form = Setting("FORM", choice("json", "pretty"), "json", "How to log.")


class Storing(Settings):
    place = Setting("PLACE", TEXT, "here", "Where files are.")


class Both(Storing, Logging):
    level = Setting("LEVEL", choice("debug", "info"), "debug", "From where on to log.")
    own = Setting("OWN", TEXT, "mine", "Its own.")

    def check(self) -> None:
        if self.own == self.place:
            raise SettingError(self.__class__.own.name, str(self.own), "another place than PLACE")


def test_settings_of_several_parents_are_read_once_each_and_may_be_redeclared() -> None:
    settings = Both({"PLACE": "there", "FORM": "pretty"})

    assert (settings.level, settings.form) == ("debug", "pretty")
    assert (settings.place, settings.own) == ("there", "mine")
    assert sorted(setting.name for setting in Both.declared) == ["FORM", "LEVEL", "OWN", "PLACE"]
    assert [setting.name for setting in Storing.declared] == ["PLACE"]
    assert Logging({}).level == "info"


def test_values_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(SettingError, match="OWN is 'there': expected another place than PLACE"):
        Both({"PLACE": "there", "OWN": "there"})


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("65536", 65_536),
        ("64kb", 65_536),
        ("64 KiB", 65_536),
        ("1mb", 1_048_576),
        ("1.5mb", 1_572_864),
        ("1_000b", 1_000),
        ("2gib", 2 * 1024**3),
        ("1\tgb", 1024**3),
        ("1e3 kb", 1_024_000),
        (str(MOST_BYTES), MOST_BYTES),
    ],
)
def test_a_size_may_have_a_unit(text: str, size: int) -> None:
    assert read(BYTES, text) == size


@pytest.mark.parametrize(
    "text", ["mb", "-1kb", "0", "0.5", "1tb", "1k", "1kbkb", "inf", "1e400", "nan kb", "9" * 5_000]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(SettingError):
        read(BYTES, text)


@pytest.mark.parametrize(("text", "value"), [("1_000", 1000), ("١٢", 12), ("-7", -7), (" +5 ", 5)])
def test_a_whole_number_may_be_written_as_python_writes_it(text: str, value: int) -> None:
    assert read(whole(-10, 10_000), text) == value


def test_a_path_may_begin_at_home_and_is_made_absolute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))

    assert read(PATH, "~/state") == tmp_path / "state"
    assert read(PATH, "state") == Path.cwd() / "state"


def test_a_path_from_a_folder_that_is_gone_is_refused(tmp_path: Path) -> None:
    program = (
        "import os, sys; from bridgehead.runtime.directories import StateSettings\n"
        "os.mkdir(sys.argv[1]); os.chdir(sys.argv[1]); os.rmdir(sys.argv[1])\n"
        "from bridgehead.runtime.settings import SettingError\n"
        "print(StateSettings({'BRIDGEHEAD_STATE_DIR': '/state'}).state_dir)\n"
        "try: StateSettings({'BRIDGEHEAD_STATE_DIR': 'state'})\n"
        "except SettingError as error: print(error)\n"
        "os.chdir('/')\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "gone")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "/state",
        "BRIDGEHEAD_STATE_DIR is 'state': expected a path, preferably absolute.",
    ]


def value_or_refusal(kind: Kind[Any], text: str) -> Any:
    """Read a value, or None where there is none; anything but a SettingError fails the test."""
    try:
        return read(kind, text)
    except SettingError:
        return None


@examined(deadline=None)
@given(text=numbers, bounds=st.lists(st.integers(), min_size=2, max_size=2).map(sorted))
def test_any_text_is_a_whole_number_in_range_or_refused(text: str, bounds: list[int]) -> None:
    value = value_or_refusal(whole(*bounds), text)

    assert value is None or (type(value) is int and bounds[0] <= value <= bounds[1])


@examined(deadline=None)
@given(
    text=numbers,
    bounds=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2).map(sorted),
)
def test_any_text_is_a_number_in_range_or_refused(text: str, bounds: list[float]) -> None:
    value = value_or_refusal(number(*bounds), text)

    assert value is None or (type(value) is float and bounds[0] <= value <= bounds[1])


@examined(deadline=None)
@given(text=sizes)
@example(text="inf")
@example(text="1e400gb")
def test_any_text_is_a_size_in_range_or_refused(text: str) -> None:
    value = value_or_refusal(BYTES, text)

    assert value is None or (type(value) is int and 1 <= value <= MOST_BYTES)


@examined(deadline=None)
@given(text=st.text())
@example(text="~\x00")
@example(text="~\ud800/x")
@example(text="\\\\")
def test_any_text_is_a_value_of_the_other_kinds_or_refused(text: str) -> None:
    is_set = bool(text.strip())

    assert value_or_refusal(FLAG, text) in {True, False, None}
    assert value_or_refusal(choice("json", "Pretty"), text) in {"json", "Pretty", None}
    assert value_or_refusal(TEXT, text) == (text.strip() if is_set else None)
    path = value_or_refusal(PATH, text)
    assert path is None or path.is_absolute()
    words = value_or_refusal(WORDS, text)
    assert (words is None) != is_set
    assert all(word == word.strip() and word and "," not in word for word in words or ())


@examined(deadline=None)
@given(word=st.sampled_from(["1", "true", "YES", "oN", "0", "False", "no", "OFF"]))
def test_a_flag_is_understood_in_any_case(word: str) -> None:
    assert read(FLAG, word) is (word.lower() in {"1", "true", "yes", "on"})


def test_a_password_in_an_address_is_never_shown() -> None:
    class Reached(Settings):
        url = Setting("REACHED_URL", TEXT, None, "Where.")

    shown = dict(Reached({"REACHED_URL": "https://ann:pw@example.com/a"}).summary())
    assert shown == {"REACHED_URL": "https://***@example.com/a"}
    refused = SettingError("REACHED_URL", "ftp://ann:pw@example.com", "an https address")
    assert str(refused) == "REACHED_URL is 'ftp://***@example.com': expected an https address."
    assert hide_credentials("mail ann@example.com") == "mail ann@example.com"


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [
        ("AOC_YEAR", "AOC_YEAR", 0),
        ("AOC_YEER", "AOC_YEAR", 1),
        ("AOC_YAER", "AOC_YEAR", 1),
        ("AOC_YER", "AOC_YEAR", 1),
        ("AOC_YEARS", "AOC_YEAR", 1),
        ("", "AB", 2),
        ("ABCD", "WXYZ", 3),
    ],
)
def test_letters_that_are_missing_added_wrong_or_swapped_are_counted_up_to_a_limit(
    one: str, other: str, edits: int
) -> None:
    assert (count_edits(one, other, 2), count_edits(other, one, 2)) == (edits, edits)


def unused(environment: dict[str, str], *declared: str) -> dict[str, str]:
    settings = [Setting(name, TEXT, "", "A setting.") for name in declared]
    return {each.name: each.meant for each in find_unused(environment, settings, (), ("AOC_", "BRIDGEHEAD_"))}


def test_one_letter_may_be_wrong_in_a_short_name_and_two_in_a_long_one() -> None:
    environment = {"AOC_YAAR": "1", "AOC_YAIR": "1", "BRIDGEHED_REDONLY": "1", "BRIDGEHEAD_READ_NLY": ""}
    environment |= {"BRIDGEHEAD_REED_ONL": "1", "LOG_LEVEl": "x", "LOG_LEVL": "x", "AOC_YEAR": "2024"}

    assert unused(environment, "AOC_YEAR", "BRIDGEHEAD_READ_ONLY", "LOG_LEVEL") == {
        "AOC_YAAR": "AOC_YEAR",
        "AOC_YAIR": "",
        "BRIDGEHEAD_REED_ONL": "BRIDGEHEAD_READ_ONLY",
    }


def test_there_may_be_words_too_many_or_too_few() -> None:
    environment = {"AOC_DAILY_BUDGET_USD": "3", "AOC_CLIENT_DAY_BUDGET_USD": "3", "AOC_USD": "3"}
    environment |= {"AOC_SESSION": "x", "AOC": "1", "BUDGET_USD": "3", "MY_LOG_LEVEL": "x"}

    assert unused(
        environment, "AOC_BUDGET_USD", "AOC_CLIENT_BUDGET_USD", "AOC_SESSION_FILE", "LOG_LEVEL"
    ) == {
        "AOC_DAILY_BUDGET_USD": "AOC_BUDGET_USD",
        "AOC_CLIENT_DAY_BUDGET_USD": "AOC_CLIENT_BUDGET_USD",
        "AOC_SESSION": "AOC_SESSION_FILE",
        "AOC_USD": "AOC_BUDGET_USD",
    }
