"""The corpus: scripts that are right or wrong, each with the game's verdict in its first line.

Owns reading them. A file may hold further files after lines of `//// path`. The verdicts come from reading
the game's source, those of syntax and import errors also from its own RAM calculation. The rules were tuned
on every other case; the rest are held out and tell how the rules do on scripts that nobody looked at.
"""

from pathlib import Path

from msgspec import Struct

FOLDER = Path(__file__).with_name("corpus")


class Case(Struct, frozen=True):
    """One script with the files that it can import."""

    filename: str
    verdict: str
    files: dict[str, str]
    is_held_out: bool


def load(kind: str) -> list[Case]:
    """Return the cases of a folder, by name."""
    cases = []
    for number, path in enumerate(sorted((FOLDER / kind).iterdir())):
        text = path.read_text(encoding="utf-8")
        verdict = text.partition("\n")[0].removeprefix("// The game: ")
        files: dict[str, str] = {}
        name = path.name
        for line in text.splitlines(keepends=True):
            if line.startswith("//// "):
                name = line[5:].strip()
            else:
                files[name] = files.get(name, "") + line
        cases.append(Case(path.name, verdict, files, is_held_out=number % 2 == 1))
    return cases
