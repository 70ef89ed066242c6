"""Far sides: what stands in for the game, the files and the API when a release is tried, by bridge.

Each gives the settings with which the bridge finds it.
"""

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Timer

PATIENCE = 30.0
PUZZLE = "Lanterns hang along the quay, and every second one is lit. How many are dark?\n"


@contextmanager
def puzzles(_: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[dict[str, str]]:
    """A folder with an invented puzzle."""
    instructions = folder / "instructions"
    instructions.mkdir(exist_ok=True)
    (instructions / "Day01_phase1.md").write_text(PUZZLE, encoding="utf-8")
    yield {"AOC_DATA_DIR": str(folder)}


@contextmanager
def no_game(_: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[dict[str, str]]:
    """A port that no game knows."""
    yield {"BITBURNER_LISTEN": "127.0.0.1:0", "BITBURNER_CONNECT_WAIT_MS": "0"}


@contextmanager
def simulated_api(
    command: Sequence[str], environment: Mapping[str, str], folder: Path
) -> Iterator[dict[str, str]]:
    """The simulated API that the distribution comes with."""
    process = subprocess.Popen(
        [*command, "mercury", "simulate"],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(environment),
        cwd=folder,
    )
    too_late = Timer(PATIENCE, process.kill)
    too_late.start()
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        too_late.cancel()
        assert address.startswith("http://"), f"the simulated API did not say where it is: {address!r}"
        yield {"MERCURY_API_URL": address, "MERCURY_API_KEY": "sk_simulated"}
    finally:
        too_late.cancel()
        process.terminate()
        process.communicate(timeout=PATIENCE)


FarSide = Callable[[Sequence[str], Mapping[str, str], Path], AbstractContextManager[dict[str, str]]]
BY_BRIDGE: dict[str, FarSide] = {"aoc": puzzles, "bitburner": no_game, "mercury": simulated_api}
