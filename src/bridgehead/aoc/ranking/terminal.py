"""Terminal: print a board for a person, as wide as there is room."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.text import Text

from . import rendering, wording
from .standings import Board


def print_board(board: Board) -> None:
    """Print the title, the table and the notes of a board."""
    # On Windows rich treats a pipe as a legacy console, and would leave its last column empty.
    is_old = None if sys.stdout.isatty() else False
    console = Console(legacy_windows=is_old)
    width = console.width
    if not console.is_terminal and "COLUMNS" not in console._environ:  # noqa: SLF001 - as rich itself asks
        width = max(width, rendering.natural_width(board))  # a pipe has no edge: show every column
        console = Console(width=width, legacy_windows=is_old)
    console.print(Text(wording.board_title(board), style="bold"))
    console.print(rendering.table(board, width))
    for note in wording.notes(board):
        console.print(Text(note, style="dim"))
