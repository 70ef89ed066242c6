"""Words: players' synonyms for the API's words and functions, and stop words, from `words.txt`."""

from __future__ import annotations

from importlib.resources import files


def _read() -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    section: list[str] = []
    for line in files(__package__).joinpath("words.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            section.append(line)
    return sections


def _list_words(lines: list[str]) -> dict[str, frozenset[str]]:
    pairs = (line.partition(":") for line in lines)
    return {name.strip(): frozenset(words.split()) for name, _, words in pairs}


_SECTIONS = _read()
STOP = frozenset(word for line in _SECTIONS["stop"] for word in line.split())
SYNONYMS = _list_words(_SECTIONS["synonyms"])
"""Each word of the API with its synonyms."""
PURPOSES = _list_words(_SECTIONS["purposes"])
"""Players' words for the purpose of a function, by its bare name."""
