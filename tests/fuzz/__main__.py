"""`make fuzz`: search for a while, and add what breaks something to the corpus.

python -m tests.fuzz [--seconds N] [--seed N] [http] [jsonrpc]
"""

import argparse
import importlib.util
import subprocess
import sys
import time
from pathlib import Path

from tests.fuzz.corpus import HERE, Corpus

TARGETS = ("http", "jsonrpc")
FOLDER = Path(__file__).parents[2] / "build" / "fuzz"
MAX_SEED = 2**32


def main() -> int:
    """Fuzz each target for its share of the time; the exit status is 1 if something broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", help=f"one of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long in all")
    parser.add_argument("--seed", type=int, default=time.time_ns(), help="to repeat a search")
    options = parser.parse_args()
    if unknown := set(options.target) - set(TARGETS):
        parser.error(f"Unknown target {unknown.pop()!r}. Targets are {', '.join(TARGETS)}.")
    if importlib.util.find_spec("atheris") is None:
        parser.error("atheris is missing. `make fuzz` installs it on Linux x86-64 with Python 3.11 to 3.14.")
    chosen = options.target or TARGETS
    seed = options.seed % MAX_SEED
    print(f"seed {seed}", flush=True)
    limits = [f"-max_total_time={max(1, round(options.seconds / len(chosen)))}", f"-seed={seed}"]
    results = [search(name, FOLDER / name, limits) for name in chosen]
    return 0 if all(results) else 1


def search(name: str, folder: Path, options: list[str], corpus: Path = HERE) -> bool:
    """Search one target; keep the inputs that break something, and return whether there was none."""
    folder.mkdir(parents=True, exist_ok=True)
    before = set(folder.iterdir())
    print(f"{name}:", flush=True)
    command = [sys.executable, "-m", "tests.fuzz.search", name, str(folder), "-print_final_stats=1", *options]
    done = subprocess.run(command, check=False)
    for file in sorted(set(folder.iterdir()) - before):
        if file.name.startswith(("crash-", "timeout-", "oom-")):
            print(f"{file.name} is kept as {Corpus(corpus / name).add(file.read_bytes())}")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
