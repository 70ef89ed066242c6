"""One search with atheris, in a process of its own: libFuzzer ends the process.

python -m tests.fuzz.search TARGET FOLDER [libFuzzer's options]

An input that breaks something is written to FOLDER as `crash-…` or `timeout-…`, and the exit status is not 0.
FOLDER/known holds what the search begins with and the inputs that reached new code.
"""

import asyncio
import importlib
import random
import sys
from pathlib import Path
from typing import Any

from tests.fuzz.corpus import HERE, Corpus

MAX_BYTES = 1024 * 1024
"""The HTTP server's limits are found only by inputs of this order."""
HANG_SECONDS = 60
"""How long one input may take; the largest takes half a second, and more on a busy machine."""

REPEATING = 0.01
"""Share of the inputs in which a part is repeated."""


def main(name: str, folder: Path, options: list[str]) -> None:
    """Search until an option ends it."""
    # By name, because it has neither types nor wheels for every platform.
    atheris: Any = importlib.import_module("atheris")
    # Only what is imported here for the first time is instrumented; atheris filters by top-level package.
    with atheris.instrument_imports(include=["bridgehead"]):
        from tests.fuzz.targets import TARGETS
    target = TARGETS[name]
    known = Corpus(folder / "known")
    for data in (*target.seeds, *Corpus(HERE / name).read().values()):
        known.add(data)
    dictionary = folder / "words"
    dictionary.write_text("".join(f'"{_escape(word)}"\n' for word in target.words), encoding="ascii")
    with asyncio.Runner() as runner:
        arguments = [
            sys.argv[0],
            f"-dict={dictionary}",
            f"-artifact_prefix={folder}/",
            f"-max_len={MAX_BYTES}",
            "-len_control=0",  # large inputs from the start, not only when small ones reach nothing new
            f"-timeout={HANG_SECONDS}",
            *options,
            str(folder / "known"),
        ]

        def mutate(data: bytes, limit: int, seed: int) -> bytes:
            dice = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
            if dice.random() < REPEATING:
                return repeat(data, dice)[:limit]
            mutated: bytes = atheris.Mutate(data, limit)
            return mutated

        atheris.Setup(arguments, lambda data: runner.run(target.judge(data)), custom_mutator=mutate)
        atheris.Fuzz()


def repeat(data: bytes, dice: random.Random) -> bytes:
    """Repeat a part of an input. libFuzzer alone did not reach nesting that is too deep in 33,000 inputs."""
    at = dice.randint(0, len(data))
    part = data[at : at + dice.choice((1, 8, 64, 512))]
    return data[:at] + part * dice.choice((64, 1024, 8192)) + data[at:]


def _escape(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
