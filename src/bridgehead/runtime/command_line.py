"""Command line: argparse with errors of one line, what a shell completes, and tables for a spreadsheet."""

from __future__ import annotations

import argparse
import codecs
import io
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn, TextIO

WRONG_USAGE = 2
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
"""What a spreadsheet takes for the beginning of a formula, as OWASP lists it, and our own mark."""
_MANY = ("*", "+")
_HANDLER = "bridgehead.signs"
_SIGNS = {
    "✓": "+",
    "✗": "x",
    "•": "-",
    "→": "->",
    "…": "...",
    "×": "x",
    "“": '"',
    "”": '"',
}

Complete = Callable[[list[str], Mapping[str, str]], Iterable[str]]
"""Gives the words that may be an argument's value, from the words before it and the environment."""


def completed_by(action: argparse.Action, complete: Complete) -> argparse.Action:
    """Let a shell complete an argument with words that argparse itself does not check."""
    action.completer = complete  # type: ignore[attr-defined]  # the name that argcomplete made usual
    return action


class Parser(argparse.ArgumentParser):
    """A parser whose help keeps its line breaks and whose errors are one line."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)

    def add_subparsers(self, **options: Any) -> Any:
        """Add subcommands, each of which words its own errors."""
        return super().add_subparsers(**{"parser_class": Subcommand, **options})

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse what is not among the choices, with the one that was probably meant."""
        if action.choices is not None and value not in action.choices:
            noun = action.metavar if isinstance(action.metavar, str) else action.dest
            options = action.option_strings
            reason = f"{options[-1]} does not take" if options else f"Unknown {noun.lower()}"
            self.refuse(f"{reason} {value!r}", value, action.choices)

    def refuse(self, message: str, word: object, known: Iterable[object]) -> NoReturn:
        """Say that a word is not known, with the one that was probably meant or all there are, and leave."""
        words = [str(one) for one in known]
        valid = f"{words[0]} to {words[-1]}" if isinstance(known, range) else ", ".join(words)
        meant = get_close_matches(str(word).lower(), words, n=1) if isinstance(word, str) else ()
        step = f"Did you mean {meant[0]!r}?" if meant else f"Valid values are {valid}."
        self.error(message, step=step)

    def error(self, message: str, expected: str = "", *, step: str = "") -> NoReturn:
        """Say what is wrong and what is expected, by default the usage, in one line, and leave."""
        self.color = False  # or Python 3.14 puts colours into the usage
        usage = " ".join(self.format_usage().removeprefix("usage: ").split())
        step = step or (f"Expected {expected}." if expected else f"Usage: {usage}")
        sys.stderr.write(f"{self.prog}: {_one_line(message.rstrip('.'))}. {_one_line(step)}\n")
        raise SystemExit(WRONG_USAGE)

    def complete(self, words: list[str], environment: Mapping[str, str]) -> list[str]:
        """Return what may follow some words; nothing where the next one can be anything."""
        line = _Line(self._actions, environment)
        for at, word in enumerate(words):
            if not line.take(word, words[:at]):
                return []
            if line.subcommand is not None:
                return line.subcommand.complete(words[at + 1 :], environment)
        return line.offer(words)


class Subcommand(Parser):
    """One of several commands of a parser; what it does not know is its own error, with its own usage."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and refuse what is left over."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


class _Line:
    """A command line as far as it is typed, and what of it is still to come."""

    def __init__(self, actions: Iterable[argparse.Action], environment: Mapping[str, str]) -> None:
        actions = list(actions)
        self._environment = environment
        self._positionals = [action for action in actions if not action.option_strings]
        self._options = {name: one for one in actions for name in one.option_strings if _is_shown(name)}
        self._pending: argparse.Action | None = None
        """An option whose value comes next."""
        self.subcommand: Parser | None = None

    def take(self, word: str, before: list[str]) -> bool:
        """Read one more word; False where the parser would refuse it."""
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
        """Return what may come next."""
        if self._pending is not None:
            return self._words_for(self._pending, words) or []
        known = self._words_for(self._positionals[0], words) if self._positionals else []
        if not known and self._positionals and self._positionals[0].required:
            return []  # anything, such as a file, which the shell completes
        return [word for word in [*(known or ()), *self._options] if word not in words]

    def _words_for(self, action: argparse.Action, before: list[str]) -> list[str] | None:
        """Return what an argument can be; None where that is not known."""
        complete: Complete | None = getattr(action, "completer", None)
        if action.choices is None and complete is None:
            return None
        return [*map(str, action.choices or ()), *(complete(before, self._environment) if complete else ())]


def _is_shown(option: str) -> bool:
    return option.startswith("--") and option != "--help"


def _one_line(message: str) -> str:
    """Write out what a message repeats of the command line and a terminal would act on."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)


def write_csv(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Write a table as CSV in which no text is a formula, whoever chose it.

    A text that begins like one has an apostrophe before it, and so has one that begins with an apostrophe:
    taking one away always gives the text back. Numbers stay as they are.
    """
    return "".join(map(_write_row, [columns, *rows]))


def _write_row(cells: Iterable[object]) -> str:
    from csv import writer

    out = io.StringIO()
    writer(out, lineterminator="\r\n").writerow(map(_disarm, cells))  # which quotes either sign in a text
    return out.getvalue().removesuffix("\r\n") + "\n"


def _disarm(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _replace_signs(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_SIGNS.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def tolerate_encoding(*streams: TextIO) -> None:
    """Let streams write what they cannot encode as something like it, and never fail for it."""
    codecs.register_error(_HANDLER, _replace_signs)
    for stream in streams:
        stream.reconfigure(errors=_HANDLER)  # type: ignore[attr-defined]  # as those that Python opens can
