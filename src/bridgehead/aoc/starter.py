"""Starter: an invented puzzle with its input and answers, for a first try and for demonstrations.

No text of the site is in this distribution.
"""

from __future__ import annotations

from contextlib import suppress
from math import isqrt
from pathlib import Path

from bridgehead.runtime.lines import split_lines

LANTERNS = 200_000
PHASE1 = """\
# Lanterns on the quay

Lanterns hang in a row, numbered from 1, all of them dark; your input is how many there are. The keeper walks
along the row again and again. On walk k she turns every k-th lantern: a dark one is lit, a lit one goes out.

With 10 lanterns, 3 are lit after 10 walks: the lanterns 1, 4 and 9.

After as many walks as there are lanterns, how many are lit?
"""
PHASE2 = """\
The keeper writes down the numbers of the lit lanterns. With 10 lanterns they add up to 14. What is their sum?
"""
ANSWER1 = isqrt(LANTERNS)
ANSWER2 = sum(number * number for number in range(1, ANSWER1 + 1))

GITIGNORE = """\
# Puzzle texts, inputs and answers are not yours to publish.
instructions/
inputs/
answers/
leaderboards/
"""


def make_starter(folder: Path) -> list[Path]:
    """Put the puzzle into a folder; existing files stay as they are. Return the files that were made."""
    files = {
        "instructions/Day01_phase1.md": PHASE1,
        "instructions/Day01_phase2.md": PHASE2,
        "inputs/day01.txt": f"{LANTERNS}\n",
        "answers/Day01_phase1.txt": f"{ANSWER1}\n",
        "answers/Day01_phase2.txt": f"{ANSWER2}\n",
    }
    created = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # "x": a file of the user's own is never overwritten.
        with suppress(FileExistsError), path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            created.append(path)
    if ignore_puzzles(folder):
        created.append(folder / ".gitignore")
    return created


def ignore_puzzles(folder: Path) -> bool:
    """List puzzle texts, inputs and answers in `.gitignore`; return whether anything was added."""
    path = folder / ".gitignore"
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    missing = [line for line in split_lines(GITIGNORE) if line not in split_lines(before)]
    if not [line for line in missing if not line.startswith("#")]:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    separator = "" if not before or before.endswith("\n") else "\n"
    path.write_text(before + separator + "\n".join(missing) + "\n", encoding="utf-8")
    return True
