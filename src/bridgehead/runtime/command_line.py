"""Command line: argparse with one-line errors and shell completion; CSV that is safe in a spreadsheet."""

from __future__ import annotations

import argparse
import codecs
import io
import math
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn, TextIO

WRONG_USAGE = 2
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
"""First characters of a formula in a spreadsheet (OWASP, CSV injection), and our own escape."""
_MANY = ("*", "+")
_MAX_MEANT = 2
_USAGE_WORD = re.compile(r"\[[^\]]*\]|\([^)]*\)|\S+")
"""A word of a usage; an option in brackets stays whole."""
_HANDLER = "bridgehead.signs"
# A Windows console or a pipe may have a code page without these.
_SIGNS = {
    "✓": "+",
    "✗": "x",
    "•": "-",
    "→": "->",
    "←": "<-",
    "·": "-",
    "…": "...",
    "×": "x",
    "“": '"',
    "”": '"',
}

Complete = Callable[[list[str], Mapping[str, str]], Iterable[str]]
"""Takes the words before an argument and the environment; returns the argument's possible values."""


def number(
    kind: type[int | float], minimum: float, maximum: float, *, is_above: bool = False
) -> Callable[[str], Any]:
    """Return what parses an argument that is a number; with `is_above`, the minimum itself is not allowed."""
    noun = "a whole number" if kind is int else "a number"
    span = (
        f"above {minimum:.15g}, at most {maximum:.15g}"
        if is_above
        else f"from {minimum:.15g} to {maximum:.15g}"
    )

    def parse(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        # NaN fails both comparisons.
        if not (minimum < value <= maximum if is_above else minimum <= value <= maximum):
            raise argparse.ArgumentTypeError(f"{text!r} is not {noun} {span}")
        return value

    return parse


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def completed_by(action: argparse.Action, complete: Complete) -> argparse.Action:
    """Let a shell complete an argument with words that argparse itself does not check."""
    action.completer = complete  # type: ignore[attr-defined]  # argcomplete's name for it
    return action


def wrap(text: str, width: int = 0) -> str:
    """Break lines that are too wide for the terminal, between words and under the start of their text."""
    width = max(20, width or shutil.get_terminal_size().columns)
    if any(len(line) > width for line in text.split("\n")):
        text = re.sub(r"(?m)(?<=\S)\n(?=\S)", " ", text)  # lines of a paragraph, to be rewrapped
    lines = []
    for line in text.split("\n"):
        # In " install write bridges", the text begins after the gap.
        gap = re.match(r" *\S.*?  +(?=\S)", line)
        indent = len(gap[0]) if gap else len(line) - len(line.lstrip())
        hanging = " " * (indent if indent <= width // 2 else 6)
        lines += textwrap.wrap(
            line,
            width,
            subsequent_indent=hanging,
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
        ) or [""]
    return "\n".join(lines)


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of descriptions, and breaks the lines that are too wide for the terminal."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return wrap(super()._fill_text(text, width, indent))

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Override argparse, which breaks words at hyphens, addresses too."""
        return textwrap.wrap(" ".join(text.split()), width, break_long_words=False, break_on_hyphens=False)

    def _format_usage(self, *arguments: Any) -> str:
        """Override argparse, which puts options beyond the right edge of a narrow terminal."""
        usage = super()._format_usage(*arguments)
        width = shutil.get_terminal_size().columns
        if all(len(line) <= width for line in usage.split("\n")):
            return usage
        lines, line = [], ""
        for word in _USAGE_WORD.findall(usage):
            if line.strip() and len(f"{line} {word}") > width:
                lines.append(line)
                line = "   "
            line = f"{line} {word}" if line else word
        return "\n".join([*lines, line]) + "\n\n"

    def add_argument(self, action: argparse.Action) -> None:
        """Override argparse, which forgets the indent of subcommands: the longest got a line of its own."""
        super().add_argument(action)
        if action.nargs == argparse.PARSER and action.choices:
            longest = max(len(name) for name in action.choices)
            indent = self._current_indent + self._indent_increment
            self._action_max_length = max(self._action_max_length, indent + longest)


class Parser(argparse.ArgumentParser):
    """A parser whose help keeps its line breaks and whose errors are one line."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", _HelpFormatter)
        # An abbreviation that works today would break or change its meaning with the next option.
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)
        # argparse would answer with the name of a type of Python: "invalid int value".
        self.register("type", int, _whole_number)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Override argparse, which ignores an error while it writes its help."""
        if message:
            (file or sys.stderr).write(message)

    def add_subparsers(self, **options: Any) -> Any:
        """Add subcommands, each of which words its own errors."""
        return super().add_subparsers(**{"parser_class": Subcommand, "action": _Subcommands, **options})

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Override argparse: suggest the choice that was probably meant."""
        if action.choices is not None and value not in action.choices:
            noun = action.metavar if isinstance(action.metavar, str) else action.dest
            if isinstance(action.choices, dict):  # subcommands, whose metavar may list them
                noun = "command"
            options = action.option_strings
            reason = f"{options[-1]} does not take" if options else f"Unknown {noun.lower()}"
            self.refuse(f"{reason} {value!r}", value, action.choices)

    def refuse(self, message: str, word: object, known: Iterable[object]) -> NoReturn:
        """Exit because a word is unknown; suggest the closest known one, or list them all."""
        words = [str(word) for word in known]
        valid = f"{words[0]} to {words[-1]}" if isinstance(known, range) else ", ".join(words)
        close: list[str] = []
        if isinstance(word, str):
            # `mercury_chat` means `mercury_chat_completion`, although `mercury_batch` is more similar.
            close = [candidate for candidate in words if word and candidate.startswith(word.lower())]
            close = close or get_close_matches(word.lower(), words, n=1)
        step = (
            f"Did you mean {' or '.join(map(repr, close[:_MAX_MEANT]))}?"
            if close
            else f"Valid values are {valid}."
        )
        self.error(message, step=step)

    def error(self, message: str, expected: str = "", *, step: str = "") -> NoReturn:
        """Exit with one line: what is wrong, then `step`, or what is expected, or the usage."""
        self.color = False  # otherwise Python 3.14 puts colours into the usage
        usage = " ".join(self.format_usage().removeprefix("usage: ").split())
        step = step or (f"Expected {expected}." if expected else f"Usage: {usage}")
        sys.stderr.write(f"{self.prog}: {_one_line(message.rstrip('.'))}. {_one_line(step)}\n")
        raise SystemExit(WRONG_USAGE)

    def complete(self, words: list[str], environment: Mapping[str, str]) -> list[str]:
        """Return the words that may follow; empty if the next can be anything, or the line is invalid."""
        line = _Line(self._actions, environment)
        for at, word in enumerate(words):
            if not line.take(word, words[:at]):
                return []
            if line.subcommand is not None:
                return line.subcommand.complete(words[at + 1 :], environment)
        return line.offer(words)


class _Subcommands(argparse._SubParsersAction):  # type: ignore[type-arg]  # noqa: SLF001 - it has no public name
    """Lets the line of a subcommand in the list be the sentence of its help, before an example."""

    def add_parser(self, name: str, *, example: str = "", **options: Any) -> Any:
        about = options.get("help", "")
        sentence = f"{about[:1].upper()}{about[1:]}.".replace("%%", "%")
        options.setdefault("description", f"{sentence}\n\n  {self._prog_prefix} {example or name}\n")
        return super().add_parser(name, **options)


class Subcommand(Parser):
    """A subcommand that reports unknown arguments itself, with its own usage rather than its parent's."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and exit if an argument is unknown."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown


class _Line:
    """A partly typed command line; knows which arguments may follow."""

    def __init__(self, actions: Iterable[argparse.Action], environment: Mapping[str, str]) -> None:
        actions = [action for action in actions if action.help is not argparse.SUPPRESS]
        self._environment = environment
        self._positionals = [action for action in actions if not action.option_strings]
        self._options = {
            name: action
            for action in actions
            for name in action.option_strings
            if name.startswith("--") and name != "--help"
        }
        self._pending: argparse.Action | None = None
        """An option whose value comes next."""
        self.subcommand: Parser | None = None

    def take(self, word: str, before: list[str]) -> bool:
        """Read one more word; return False if the parser would refuse it."""
        if self._pending is not None:
            self._pending = None
        elif word in self._options:
            option = self._options.pop(word)
            self._pending = None if option.nargs == 0 else option
        elif self._positionals and not word.startswith("-") and self._positionals[0].nargs not in _MANY:
            expected = self._positionals.pop(0)
            known = self._words_for(expected, before)
            if isinstance(expected.choices, dict):
                self.subcommand = expected.choices.get(word)
            return known is None or word in known
        return True

    def offer(self, words: list[str]) -> list[str]:
        """Return the words that may come next."""
        if self._pending is not None:
            return self._words_for(self._pending, words) or []
        known = self._words_for(self._positionals[0], words) if self._positionals else []
        if not known and self._positionals and self._positionals[0].required:
            return []  # free text or a file: leave it to the shell
        return [word for word in [*(known or ()), *self._options] if word not in words]

    def _words_for(self, action: argparse.Action, before: list[str]) -> list[str] | None:
        """Return the possible values of an argument; None if unknown."""
        complete: Complete | None = getattr(action, "completer", None)
        if action.choices is None and complete is None:
            return None
        return [*map(str, action.choices or ()), *(complete(before, self._environment) if complete else ())]


def _one_line(message: str) -> str:
    """Escape control characters: a message may repeat what was typed, and a terminal would act on them."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)


def with_settings(settings: Mapping[str, str], command: str, platform: str = sys.platform) -> str:
    """Return a line to paste that sets variables and runs a command; on Windows, for PowerShell."""
    if platform == "win32":
        quoted = {name: value.replace("'", "''") for name, value in settings.items()}
        return "".join(f"$env:{name} = '{value}'; " for name, value in quoted.items()) + command
    return "".join(f"{name}={shlex.quote(value)} " for name, value in settings.items()) + command


def write_csv(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Format a table as CSV in which no text can act as a formula.

    A text that begins like a formula, or with an apostrophe, gets an apostrophe in front, so removing one
    always restores the text. Numbers stay as they are.
    """
    from csv import writer

    lines = []
    for cells in [columns, *rows]:
        out = io.StringIO()
        # csv quotes a line break in a cell only if it is part of its line terminator: \r\n covers both.
        writer(out, lineterminator="\r\n").writerow(
            f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell for cell in cells
        )
        lines.append(out.getvalue().removesuffix("\r\n") + "\n")
    return "".join(lines)


def tolerate_encoding(*streams: TextIO) -> None:
    """Make streams replace characters that they cannot encode instead of raising."""

    def replace(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        return "".join(_SIGNS.get(sign, "?") for sign in error.object[error.start : error.end]), error.end

    codecs.register_error(_HANDLER, replace)
    for stream in streams:
        stream.reconfigure(errors=_HANDLER)  # type: ignore[attr-defined]  # the streams that Python opens have it
