"""The corpus: scripts that are right or wrong, each with the game's verdict in its first line.

Owns reading them. A file may hold further files after lines of `//// path`. The verdicts come from reading
the game's source, those of syntax and import errors also from its own RAM calculation. The rules were tuned
with `right`, `wrong`, `fresh_right` and `fresh_wrong`. `held_right` and `held_wrong` were committed before;
once measured, they were tuned with, too. CHECKING.md in bench/bitburner has the first figures of each.
"""

from pathlib import Path

from msgspec import Struct

FOLDER = Path(__file__).with_name("corpus")


class Case(Struct, frozen=True):
    """One script with the files that it can import."""

    filename: str
    verdict: str
    files: dict[str, str]


def load(kind: str) -> list[Case]:
    """Return the cases of a folder, by name."""
    cases = []
    for path in sorted((FOLDER / kind).iterdir()):
        text = path.read_text(encoding="utf-8")
        verdict = text.partition("\n")[0].removeprefix("// The game: ")
        files: dict[str, str] = {}
        name = path.name
        if name.endswith(".json"):  # which knows no comments
            text = text.partition("\n")[2]
        for line in text.splitlines(keepends=True):
            if line.startswith("//// "):
                name = line[5:].strip()
            else:
                files[name] = files.get(name, "") + line
        cases.append(Case(path.name, verdict, files))
    return cases
