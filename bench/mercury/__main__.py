"""The command `python -m bench.mercury`: measure the bridge beside its peers and report."""

import argparse
import sys
from contextlib import ExitStack

from bench.mercury import measuring, report, upstream
from bench.mercury.measuring import Effort, Samples
from bench.mercury.upstream import Upstream
from bench.mercury.ways import HERE, bridge_command, line_up
from bench.message import WrongAnswer
from bench.peers import SERVERS, install_ours
from bench.process import Process


def main() -> int:
    """Measure, print, and, after a whole run, write the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.mercury", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few and short rounds; writes no file")
    is_quick = parser.parse_args().quick
    effort = Effort(1, 1.0, 50) if is_quick else Effort(5, 3.0, 300)
    command = " ".join(["python -m bench.mercury", *sys.argv[1:]])
    try:
        text = _measure(effort, command)
    except WrongAnswer as wrong:
        print(f"\nThe bench was stopped: {wrong}", file=sys.stderr)
        return 1
    print("\n" + text)
    if not is_quick:
        (HERE / "RESULTS.md").write_text(text)
    return 0


def _measure(effort: Effort, command: str) -> str:
    samples = Samples()
    with upstream.running() as api:
        with line_up(api) as found:
            measuring.warm_up(found, effort)
            for number in range(effort.rounds):
                print(f"round {number + 1} of {effort.rounds}", flush=True)
                measuring.measure_round(found, api, samples, effort, number)
            for one in found.contestants:
                print(f"{measuring.MANY_STREAMS} streams through {one.title}", flush=True)
                measuring.measure_many(one, api, samples)
        print("the cache beside an echo", flush=True)
        _measure_cached(api, samples, effort)
    return report.write(found, samples, effort, command)


def _measure_cached(api: Upstream, samples: Samples, effort: Effort) -> None:
    echo = (str(install_ours()), str(SERVERS / "ours.py"))
    commands = {
        "cached": bridge_command(api),
        "echo_coroutine": (*echo, "coroutine", "stdio"),
        "echo": (*echo, "stdio"),
    }
    for _ in range(effort.rounds):
        with ExitStack() as stack:
            processes = {key: stack.enter_context(Process(command)) for key, command in commands.items()}
            measuring.measure_cached(processes, samples, effort)


if __name__ == "__main__":
    sys.exit(main())
