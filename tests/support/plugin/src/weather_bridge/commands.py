"""`bridgehead weather today`."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rich.console import Console

from bridgehead.runtime.command_line import Parser


def parser() -> Parser:
    """Return the parser."""
    found = Parser(prog="bridgehead weather")
    commands = found.add_subparsers(dest="command", required=True)
    commands.add_parser("today").add_argument("--unit", choices=("celsius", "kelvin"))
    return found


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Say what the weather is like."""
    parser().parse_args(arguments)
    Console().print(f"rain, {environment.get('AOC_YEAR', 'this year')}, pid {os.getpid()}")
    return 0
