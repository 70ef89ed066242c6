"""Diffusion: a text as it appears out of noise, each step sharper and the last one exact."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from . import words

NOISE = "▓▒░#%&@*+=~?"
STEPS = 12
_RING = NOISE * 8
"""Noise for tokens of every length; a longer one becomes shorter while it is blurred."""


def steps(tokens: list[str], seed: int) -> Iterator[str]:
    """Give the whole text again and again; every token has a step at which it becomes readable."""
    due = [number % STEPS for number in islice(words.numbers(seed), len(tokens))]
    for step in range(STEPS):
        shapes = words.numbers(seed + step)
        yield "".join(
            token if at < step else _noise(token, next(shapes)) for token, at in zip(tokens, due, strict=True)
        )
    yield "".join(tokens)


def _noise(token: str, shape: int) -> str:
    """Blur a token, but leave the space before it, so that the text keeps its form."""
    begin = shape % len(NOISE)
    if token[0] == " ":
        return " " + _RING[begin : begin + len(token) - 1]
    return _RING[begin : begin + len(token)]
