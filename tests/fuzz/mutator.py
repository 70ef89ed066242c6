"""Mutator: makes new inputs of known ones. The same seed makes the same inputs."""

import random
from collections.abc import Callable, Sequence

MOST_BYTES = 1024 * 1024
MOST_STEPS = 6
_INTERESTING = (b"\x00", b"\xff", b"\r", b"\n", b"\r\n", b" ", b"\t", b"-1", b"0", b"18446744073709551616")


class Mutator:
    """Changes bytes, with a dictionary of words that mean something to the target."""

    def __init__(self, dice: random.Random, words: Sequence[bytes]) -> None:
        self._dice = dice
        self._words = (*words, *_INTERESTING)
        self._changes: tuple[Callable[[bytearray], None], ...] = (
            self._flip,
            self._insert_word,
            self._insert_word,
            self._overwrite_word,
            self._delete,
            self._duplicate,
        )

    def mutate(self, known: Sequence[bytes]) -> bytes:
        """Join and change some of the known inputs."""
        data = bytearray(self._choose(known))
        if self._dice.random() < 0.3:
            self._splice(data, self._choose(known))
        for _ in range(self._dice.randint(1, MOST_STEPS)):
            self._dice.choice(self._changes)(data)
        if self._dice.random() < 0.01:
            self._repeat(data)
        return bytes(data[:MOST_BYTES])

    def _choose(self, known: Sequence[bytes]) -> bytes:
        """Choose the shortest of three: a short input takes less time, and is as likely to show something."""
        return min(self._dice.choices(known, k=3), key=len)

    def _place(self, data: bytearray) -> int:
        return self._dice.randint(0, len(data))

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self._dice.randrange(len(data))] = self._dice.randrange(256)

    def _insert_word(self, data: bytearray) -> None:
        at = self._place(data)
        data[at:at] = self._dice.choice(self._words)

    def _overwrite_word(self, data: bytearray) -> None:
        at, word = self._place(data), self._dice.choice(self._words)
        data[at : at + len(word)] = word

    def _delete(self, data: bytearray) -> None:
        at = self._place(data)
        del data[at : at + self._dice.choice((1, 2, 4, 16, 64))]

    def _duplicate(self, data: bytearray) -> None:
        at = self._place(data)
        data[at:at] = data[at : at + self._dice.choice((1, 4, 16, 64))] * self._dice.choice((1, 2, 16))

    def _splice(self, data: bytearray, other: bytes) -> None:
        start = self._dice.randint(0, len(other))
        data[self._place(data) :] = other[start:]

    def _repeat(self, data: bytearray) -> None:
        """Make much of a part: limits are found only by what is large."""
        at = self._place(data)
        part = data[at : at + self._dice.choice((1, 8, 64, 512))]
        data[at:at] = part * self._dice.choice((64, 1024, 8192))


def cut(data: bytes, dice: random.Random) -> list[bytes]:
    """Cut an input into pieces at random places."""
    most = min(len(data) - 1, dice.choice((1, 2, 5, 40)))
    places = sorted(dice.sample(range(1, len(data)), most)) if most > 0 else []
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]
