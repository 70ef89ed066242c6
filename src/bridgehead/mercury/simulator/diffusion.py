"""Diffusion: a text as it appears out of noise, each step sharper and the last one exact."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from . import words

NOISE = "▓▒░#%&@*+=~?"
STEPS = 12
_RING = NOISE * 8
"""Noise to cut pieces from; a token longer than it gets shorter while blurred."""


def steps(tokens: list[str], seed: int) -> Iterator[str]:
    """Yield the whole text once per step; each token becomes readable at a step of its own."""
    due = [number % STEPS for number in islice(words.numbers(seed), len(tokens))]
    for step in range(STEPS):
        shapes = words.numbers(seed + step)
        shown = []
        for token, readable_at in zip(tokens, due, strict=True):
            if readable_at < step:
                shown.append(token)
                continue
            begin = next(shapes) % len(NOISE)
            # Keep the space before a word, so that the text keeps its shape.
            space = token[: token[0] == " "]
            shown.append(space + _RING[begin : begin + len(token) - len(space)])
        yield "".join(shown)
    yield "".join(tokens)
