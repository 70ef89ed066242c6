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

    def error(self, message: str, right: str = "") -> NoReturn:
        """Say what is wrong and what would be right, by default the usage, in one line, and leave."""
        self.color = False  # or Python 3.14 puts colours into the usage
        right = right or " ".join(self.format_usage().removeprefix("usage: ").split())
        sys.stderr.write(f"{self.prog}: {_one_line(message)}; right would be: {_one_line(right)}\n")
        raise SystemExit(WRONG_USAGE)


def _one_line(message: str) -> str:
    """Write out what a message repeats of the command line and a terminal would act on."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)
