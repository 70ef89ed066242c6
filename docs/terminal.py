"""Terminal: a picture of `bridgehead demo`, an edit that arrives in a game, as one SVG without outside fonts.

The demo runs as a person would start it. The picture does not move: a reader sees all of it at once.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

COLUMNS = 84
SCENES = ("You: early.js earns too little", "It costs")
THEME = TerminalTheme(
    (16, 22, 31),
    (232, 238, 246),
    [
        (38, 50, 67),
        (255, 123, 114),
        (52, 211, 191),
        (230, 200, 120),
        (134, 174, 240),
        (200, 160, 240),
        (110, 210, 230),
        (232, 238, 246),
    ],
)
VIEW_BOX = re.compile(r'(viewBox="0 0 ([\d.]+) )')
OUTSIDE_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def record(path: Path) -> str:
    """Run the demo and draw its scenes into a file; return what was drawn."""
    found = dict(scenes(_run()))
    shown = [(name, found[title]) for name in SCENES for title in found if title.startswith(name)]
    if len(shown) != len(SCENES):
        missing = set(SCENES) - {name for name, _ in shown}
        raise ValueError(f"The demo has no scene {', '.join(sorted(missing))}.")
    path.write_text(draw([lines for _, lines in shown]), encoding="utf-8", newline="\n")
    return f"{path}: {len(shown)} scenes"


def _run() -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bridgehead", "demo"],
        env={**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    return done.stdout


def scenes(output: str) -> Iterator[tuple[str, list[Text]]]:
    """Cut the output into scenes: each begins with a bold sentence at the margin."""
    title, lines = "", list[Text]()
    for line in map(Text.from_ansi, output.splitlines()):
        if line.plain[:1].isalpha() and line.get_style_at_offset(Console(), 0).bold:
            yield title, lines
            title, lines = line.plain, []
        if line.plain.strip() and not line.plain.startswith("─"):
            lines.append(line)
    yield title, lines


def draw(shown: list[list[Text]]) -> str:
    """Draw scenes one below the other."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "green"), "bridgehead demo"))
    for lines in shown:
        console.print(Text(""), *lines, sep="\n")
    drawn = OUTSIDE_FONTS.sub("", console.export_svg(title="bridgehead demo", theme=THEME, unique_id="demo"))
    # With a width, pages know how large it is before they shrink it.
    return VIEW_BOX.sub(r'width="\2" \1', drawn, count=1)
