"""Command line: what is wrong and what would be right, in one line, for a command and for its subcommands."""

import argparse
import csv
import io
from collections.abc import Callable, Iterator
from importlib import import_module

import pytest

from bridgehead.commands import COMMANDS
from bridgehead.runtime.command_line import WRONG_USAGE, Parser, tolerate_encoding, wrap, write_csv


def parser() -> Parser:
    command = Parser(prog="bridgehead aoc", description="Two lines,\nkept as they are.")
    command.add_argument("--year", type=int, default=2025)
    commands = command.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record")
    record.add_argument("part", choices=["1", "2"])
    return command


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as left:
        parser().parse_args(arguments)
    out, err = capsys.readouterr()
    assert (left.value.code, out) == (WRONG_USAGE, "")
    return err


def test_what_is_right_is_parsed() -> None:
    found = parser().parse_args(["--year", "2024", "record", "2"])

    assert (found.year, found.command, found.part) == (2024, "record", "2")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "the following arguments are required: command"),
        (("--year", "soon", "record", "1"), "argument --year: 'soon' is not a whole number"),
        (("--ye=2024", "record", "1"), "unrecognized arguments: --ye=2024"),
    ],
)
def test_a_wrong_command_is_answered_by_one_line_that_says_what_would_be_right(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], reason: str
) -> None:
    line = refused(capsys, *arguments)

    assert line.startswith(f"bridgehead aoc: {reason}")
    assert line.endswith("Usage: bridgehead aoc [-h] [--year YEAR] {record} ...\n")
    assert line.count("\n") == 1


def test_a_wrong_subcommand_is_told_its_own_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for words, reason in (
        (["1", "more"], "unrecognized arguments: more"),
        (["1", "--year", "2024"], "unrecognized arguments: --year 2024"),
    ):
        line = refused(capsys, "record", *words)

        assert line.startswith(f"bridgehead aoc record: {reason}")
        assert line.endswith(". Usage: bridgehead aoc record [-h] {1,2}\n")


def test_an_unknown_value_is_told_the_valid_ones_or_the_one_that_was_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = refused(capsys, "record", "3")
    assert said == "bridgehead aoc record: Unknown part '3'. Valid values are 1, 2.\n"
    said = refused(capsys, "recrod")
    assert said.endswith(" 'recrod'. Did you mean 'record'?\n")
    assert refused(capsys, "rec").endswith(" 'rec'. Did you mean 'record'?\n")


def test_a_beginning_of_two_words_may_mean_both(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        Parser(prog="x").refuse("Unknown client 'claude'", "claude", ["claude-desktop", "claude-code", "zed"])

    assert capsys.readouterr().err == (
        "x: Unknown client 'claude'. Did you mean 'claude-desktop' or 'claude-code'?\n"
    )


def test_an_error_is_one_line_even_where_an_argument_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "record", "1", "two\nlines \x1b[31mÄ")

    assert r"unrecognized arguments: two\nlines \x1b[31mÄ." in line
    assert line.count("\n") == 1


def test_a_long_usage_is_still_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    command = Parser(prog="p")
    for number in range(30):
        command.add_argument(f"--a-rather-long-option-{number}")

    with pytest.raises(SystemExit):
        command.parse_args(["more"])

    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "[--a-rather-long-option-29 A_RATHER_LONG_OPTION_29]" in line


def test_help_keeps_its_line_breaks_and_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        parser().parse_args(["--help"])

    out, err = capsys.readouterr()
    assert (left.value.code, err) == (0, "")
    assert "Two lines,\nkept as they are." in out


def test_the_longest_subcommand_has_its_help_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser(prog="play")
    commands = parser.add_subparsers(metavar="COMMAND")
    commands.add_parser("go", help="start")
    commands.add_parser("leaderboard", help="rank")
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])

    assert "    go           start\n    leaderboard  rank\n" in capsys.readouterr().out


def test_what_a_command_wants_otherwise_it_may_say() -> None:
    command = Parser(prog="p", allow_abbrev=True)
    command.add_argument("--year")

    assert command.parse_args(["--ye", "1"]).year == "1"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "✓ ✗ → ü ☃".encode()),
        ("cp1252", b"+ x -> \xfc ?"),
        ("ascii", b"+ x -> ? ?"),
    ],
)
def test_what_cannot_be_shown_is_shown_alike(encoding: str, shown: bytes) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    tolerate_encoding(stream)

    stream.write("✓ ✗ → ü ☃")
    stream.flush()

    assert raw.getvalue() == shown


def test_half_a_character_is_shown_too() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8")
    tolerate_encoding(stream)

    stream.write("a\ud800b")
    stream.flush()

    assert raw.getvalue() == b"a?b"


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r", "\n", "'"])
def test_a_text_in_csv_is_never_a_formula_and_can_be_had_back(sign: str) -> None:
    name = f"{sign}HYPERLINK(A1)"
    read = list(csv.reader(io.StringIO(write_csv(("name", "ms"), [(name, -5), ("a=b", 0.5)]), newline="")))

    assert read == [["name", "ms"], [f"'{name}", "-5"], ["a=b", "0.5"]]
    assert read[1][0].removeprefix("'") == name


def test_lines_that_are_too_wide_break_between_words_under_their_text() -> None:
    text = "usage: it\n\n  install     write bridges into the configuration of a client\n"

    assert wrap(text, 40) == (
        "usage: it\n\n  install     write bridges into the\n              configuration of a client\n"
    )
    assert wrap(text, 100) == text


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list
        if isinstance(action.choices, dict):
            for sub in action.choices.values():
                yield from _parsers(sub)


MODULES = (
    *(module for module, _ in COMMANDS.values()),
    *(f"bridgehead.{name}.commands" for name in ("aoc", "bitburner", "mercury")),
)


@pytest.mark.parametrize("module", MODULES)
def test_every_example_of_a_help_text_fits_into_a_line_of_a_terminal(module: str) -> None:
    make: Callable[[], argparse.ArgumentParser] = import_module(module).parser

    for parser in _parsers(make()):
        texts = f"{parser.description}\n{parser.epilog}"
        wide = [line for line in texts.splitlines() if line.startswith("  ") and len(line) > 80]
        assert wide == []


@pytest.mark.parametrize("module", MODULES)
def test_every_argument_of_every_command_has_help(module: str) -> None:
    make: Callable[[], argparse.ArgumentParser] = import_module(module).parser

    for parser in _parsers(make()):
        for action in parser._actions:  # noqa: SLF001
            assert action.help or isinstance(action.choices, dict), f"{parser.prog}: {action.dest}"


def test_a_narrow_terminal_breaks_no_word_of_a_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    command = Parser(prog="bridgehead aoc leaderboard")
    command.add_argument("--to", help="https://a-b.example.org/")
    command.add_argument("--by", help="x " * 8 + "far-sighted-old-barn-owl")
    command.add_argument("--format", choices=("table", "csv", "json", "markdown"))
    text = command.format_help()

    assert max(map(len, text.splitlines())) <= 60
    assert {"https://a-b.example.org/", "far-sighted-old-barn-owl"} <= {*text.split()}
    assert "\n    [--format {table,csv,json,markdown}]\n" in text
