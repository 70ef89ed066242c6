"""Command line: argparse with errors of one line that say what would be right."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

WRONG_USAGE = 2


class Parser(argparse.ArgumentParser):
    """A parser whose help keeps its line breaks and whose errors are one line."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)

    def add_subparsers(self, **options: Any) -> Any:
        """Add subcommands, each of which words its own errors."""
        return super().add_subparsers(**{"parser_class": Subcommand, **options})

    def error(self, message: str, right: str = "") -> NoReturn:
        """Say what is wrong and what would be right, by default the usage, in one line, and leave."""
        self.color = False  # or Python 3.14 puts colours into the usage
        right = right or " ".join(self.format_usage().removeprefix("usage: ").split())
        sys.stderr.write(f"{self.prog}: {_one_line(message)}; right would be: {_one_line(right)}\n")
        raise SystemExit(WRONG_USAGE)


class Subcommand(Parser):
    """One of several commands of a parser; what it does not know is its own error, with its own usage."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and refuse what is left over."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


def _one_line(message: str) -> str:
    """Write out what a message repeats of the command line and a terminal would act on."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)
