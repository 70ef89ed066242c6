"""Words: invented, readable text for the simulated models, the same for the same seed.

A text is a list of tokens, and a token is a word with the space before it, so that counting, cutting and
streaming agree with each other. Nothing here knows the API.
"""

from __future__ import annotations

import re
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
_DEFINITION = re.compile(r"^([ \t]*)(?:async )?def (\w+)\(\s*(?:(?:self|cls)\s*,\s*)?(\w*)", re.MULTILINE)
_RETURNED = re.compile(r"^\s*return (\w+)", re.MULTILINE)
# The constants of the C standard's example of rand(): the same numbers in every Python version.
_MULTIPLIER = 1_103_515_245
_INCREMENT = 12_345
_PIECE = 4
"""Average characters of a token."""


def numbers(seed: int) -> Iterator[int]:
    """Yield pseudo-random numbers without end (a linear congruential generator)."""
    state = seed
    while True:
        state = (state * _MULTIPLIER + _INCREMENT) & 0x7FFF_FFFF
        yield state >> 12


def prose(seed: int) -> Iterator[str]:
    """Yield the tokens of an endless story."""
    return chain.from_iterable(_SENTENCES[number % len(_SENTENCES)] for number in numbers(seed))


def sentences(seed: int, count: int) -> list[str]:
    """Return the tokens of a few sentences."""
    chosen = (_SENTENCES[number % len(_SENTENCES)] for number in islice(numbers(seed), count))
    return list(chain.from_iterable(chosen))


def code(prompt: str, suffix: str) -> list[str]:
    """Return the tokens of Python that fits between two pieces: a function's body, a blank line, and a test.

    It sums the function's first argument into the name that the suffix returns, so the result can be run.
    """
    definitions = list(_DEFINITION.finditer(prompt))
    indent, name, argument = definitions[-1].groups() if definitions else ("", "run", "")
    inner = f"{indent}    " if definitions else indent
    returned = _RETURNED.search(suffix)
    total = returned[1] if returned else "total"
    lines = [
        f"{inner}{total} = 0",
        f"{inner}for item in {argument or 'range(10)'}:",
        f"{inner}    {total} += item",
    ]
    if definitions and not returned:
        lines.append(f"{inner}return {total}")
    lines += [
        "",
        f"{indent}def test_{name}():",
        f"{indent}    assert {name}({'[1, 2, 3]' if argument else ''})",
    ]
    begun = prompt.rpartition("\n")[2]  # the cursor's line, up to the cursor
    lines[0] = lines[0].removeprefix(begun if begun.isspace() else "")
    return split("\n".join(lines) + "\n")


def split(text: str) -> list[str]:
    """Cut any text into tokens: at its spaces, and long words into pieces."""
    tokens: list[str] = []
    for number, word in enumerate(text.split(" ")):
        spaced = word if number == 0 else f" {word}"
        tokens += [spaced[at : at + _PIECE * 2] for at in range(0, len(spaced), _PIECE * 2)]
    return tokens


def count(text: str) -> int:
    """Estimate the tokens of any text."""
    return (len(text) + _PIECE - 1) // _PIECE
