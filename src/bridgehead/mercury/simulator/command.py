"""Command: `bridgehead mercury simulate` serves the simulated API to a person or another process."""

from __future__ import annotations

import asyncio
import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Mapping

from bridgehead.mcp import shutdown_signals, socket_loop
from bridgehead.runtime.command_line import Parser, number, with_settings

from ..settings import SIMULATED_KEY
from .faults import NAMED, Fault, Faults
from .server import Simulator

MIXED = "mixed"
DELAY_MS = 1.0
MAX_DELAY_MS = 60_000
"""One token a millisecond, about the 1,000 tokens a second of the real service."""
_ABOUT = f"""\
Serves a simulated Mercury API on loopback, with invented answers in the real shapes. It needs no real
key and costs nothing.

  bridgehead mercury simulate --port 4010 --fault 429=0.2

Faults, each for every request or, with a share, for some of them, as in --fault 429=0.2:
  {MIXED} (all of them), {", ".join(NAMED)}
"""
_WELCOME = """\
{url}
is the simulated API. Next, in another terminal:
  {try_it}
`bridgehead install CLIENT mercury` with the same two variables connects a client to it.
While it runs, POST {origin}/_faults injects faults, and GET {origin}/_requests lists the requests.
Press Ctrl+C to stop.
"""


def simulate(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Run the simulated API until it is interrupted."""
    parser = Parser(prog="bridgehead mercury simulate", description=_ABOUT)
    parser.add_argument(
        "--port", type=number(int, 0, 65_535), default=0, help="the port to listen on (default: a free one)"
    )
    parser.add_argument(
        "--delay-ms",
        type=number(float, 0, MAX_DELAY_MS),
        default=DELAY_MS,
        help="milliseconds between tokens (default: 1; 0: none)",
    )
    parser.add_argument("--key", action="append", help="a key to accept (default: all)")
    parser.add_argument("--fault", type=_share, metavar="NAME[=SHARE]", help="a fault to inject")
    parser.add_argument("--seed", type=int, default=0, help="makes the faults repeatable")
    options = parser.parse_args(arguments)

    async def serve() -> None:
        rate, among = options.fault or (0.0, ())
        simulator = Simulator(
            options.port,
            faults=Faults(rate, options.seed, among),
            keys=options.key,
            chunk_delay=options.delay_ms / 1000,
        )
        with shutdown_signals() as ended:
            async with simulator:
                key = options.key[0] if options.key else SIMULATED_KEY
                settings = {"MERCURY_API_URL": simulator.url, "MERCURY_API_KEY": key}
                try_it = with_settings(settings, "bridgehead call mercury mercury_list_models")
                sys.stdout.write(_WELCOME.format(url=simulator.url, origin=simulator.origin, try_it=try_it))
                sys.stdout.flush()
                await ended.wait()

    try:
        with asyncio.Runner(loop_factory=socket_loop) as runner:
            runner.run(serve())
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)  # asyncio adds the address to its own
        sys.stderr.write(f"bridgehead mercury simulate: cannot listen on port {options.port}: {why}\n")
        return 1
    return 0


def _share(text: str) -> tuple[float, tuple[Fault, ...]]:
    """Parse NAME[=SHARE] into a share and the faults to choose from; none means all."""
    name, _, share = text.partition("=")
    try:
        rate = float(share or 1)
    except ValueError:
        raise ArgumentTypeError(f"{share!r} is not a share from 0 to 1") from None
    if not 0 <= rate <= 1:
        raise ArgumentTypeError(f"{share} is not a share from 0 to 1")
    if name != MIXED and name not in NAMED:
        raise ArgumentTypeError(f"there is no fault {name!r}, but {MIXED}, {', '.join(NAMED)}")
    return rate, () if name == MIXED else (NAMED[name],)
