"""Words: the invented, readable text that the simulated models answer with, the same for the same seed.

A text is a list of tokens, and a token is a word with the space before it, so that counting, cutting and
streaming agree with each other. Nothing here knows the API.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

_SENTENCES = tuple(
    tuple(f" {word}" for word in sentence.split())
    for sentence in (
        "The harbour was quiet when the first boat came in.",
        "Nobody had counted the lamps along the pier before that night.",
        "A careful reader would have noticed the second map under the first.",
        "Rain had washed the chalk from the steps, but not the numbers.",
        "She wrote the answer on the back of an old ticket and smiled.",
        "Every bridge in the town was built by somebody who disliked boats.",
        "The clock in the tower ran fast, which suited the bakers well.",
        "Between the two banks lay a river that had its own opinion.",
        "His notes were short, exact, and impossible to lose.",
        "They agreed on the plan, then on the price, then on the weather.",
        "Some doors open more easily for those who knock twice.",
        "The engine hummed in a key that only the old keeper could name.",
        "By noon the fog had lifted and the far side was there again.",
        "Three small coins bought a loaf, a candle and a little patience.",
        "What looked like a shortcut turned out to be the scenic road.",
        "In the end the simplest of the four ideas worked at once.",
    )
)
_LINES = (
    ("    total", " =", " 0\n"),
    ("    for", " item", " in", " items", ":\n"),
    ("        total", " +=", " item", ".weight\n"),
    ("    if", " not", " items", ":\n"),
    ("        return", " None\n"),
    ("    seen", " =", " set", "()\n"),
    ("    seen", ".add", "(item", ".name", ")\n"),
    ("    result", " =", " sorted", "(seen", ")\n"),
    ("    return", " result\n"),
    ("    return", " total\n"),
)
_MULTIPLIER = 1_103_515_245
_INCREMENT = 12_345
_PIECE = 4
"""Characters of a token where a text has no words, as in JSON."""


def numbers(seed: int) -> Iterator[int]:
    """Give numbers without end that look like chance and are the same every time."""
    state = seed
    while True:
        state = (state * _MULTIPLIER + _INCREMENT) & 0x7FFF_FFFF
        yield state >> 12


def prose(seed: int) -> Iterator[str]:
    """Give the tokens of a story without end."""
    return chain.from_iterable(_SENTENCES[number % len(_SENTENCES)] for number in numbers(seed))


def sentences(seed: int, count: int) -> list[str]:
    """Return the tokens of a few sentences."""
    chosen = (_SENTENCES[number % len(_SENTENCES)] for number in islice(numbers(seed), count))
    return list(chain.from_iterable(chosen))


def code(seed: int) -> list[str]:
    """Return the tokens of a few lines of code, a blank line, and a few more."""
    chosen = [_LINES[number % len(_LINES)] for number in islice(numbers(seed), 6)]
    return [*chain.from_iterable(chosen[:3]), "\n", *chain.from_iterable(chosen[3:])]


def split(text: str) -> list[str]:
    """Cut any text into tokens: at its spaces, and long words into pieces."""
    tokens: list[str] = []
    for number, word in enumerate(text.split(" ")):
        spaced = word if number == 0 else f" {word}"
        tokens += [spaced[at : at + _PIECE * 2] for at in range(0, len(spaced), _PIECE * 2)]
    return tokens


def count(text: str) -> int:
    """Estimate the tokens of a text that somebody else wrote."""
    return (len(text) + _PIECE - 1) // _PIECE
