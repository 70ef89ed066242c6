"""`make fuzz`: search for a while, and add what is found to the corpus.

python -m tests.fuzz [--seconds N] [--seed N] [http] [jsonrpc]
"""

import argparse
import sys
import time

from tests.fuzz.corpus import HERE, Corpus
from tests.fuzz.fuzzer import TARGETS, Fuzzer, until_time


def main() -> int:
    """Fuzz each target for its share of the time; the exit status is 1 where something broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", help=f"one of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long in all")
    parser.add_argument("--seed", type=int, default=time.time_ns(), help="to repeat a search")
    options = parser.parse_args()
    if unknown := set(options.target) - set(TARGETS):
        parser.error(f"Unknown target {unknown.pop()!r}. Targets are {', '.join(TARGETS)}.")
    chosen = options.target or list(TARGETS)
    print(f"seed {options.seed}")
    print("| target | inputs | steps covered | kept before | new | failures |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    results = [_fuzz(name, options.seconds / len(chosen), options.seed) for name in chosen]
    return 0 if all(results) else 1


def _fuzz(name: str, seconds: float, seed: int) -> bool:
    corpus = Corpus(HERE / name)
    kept = list(corpus.read().values())
    found = Fuzzer(TARGETS[name], seed).run(kept, until_time(seconds))
    for data in found.new:
        corpus.add(data)
    counts = (found.inputs, len(found.steps), len(kept), len(found.new), len(found.failures))
    print(f"| {name} | " + " | ".join(f"{count:,}" for count in counts) + " |", flush=True)
    for data, problem in found.failures:
        print(f"\n{corpus.add(data)}: {type(problem).__name__}: {problem}\n{data[:2000]!r}")
    return not found.failures


if __name__ == "__main__":
    sys.exit(main())
