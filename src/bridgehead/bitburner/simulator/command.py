"""Command: `bridgehead bitburner simulate`, a game to try the bridge with."""

from __future__ import annotations

import asyncio
from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from websockets.exceptions import InvalidURI
from websockets.uri import parse_uri

from bridgehead.mcp import shutdown_signals
from bridgehead.runtime.command_line import Parser, number

from ..settings import BitburnerSettings
from . import faults
from .game import ABNORMAL, Game
from .paths import GameFolder, read_folder
from .screen import Screen
from .world import HOME, HOSTS, STARTER

PAGE = "https://bitburner-official.github.io"
RECONNECT_SECONDS = 2.0
_ABOUT = """\
Simulates the game in memory: it connects and answers as the game does.

Generation 3 dials again after a drop. Generation 2 does not, as its player has to press Connect; --reconnect
presses it for you. Press Ctrl+C to stop.

  bridgehead bitburner simulate --generation 2
"""
MAX_RECONNECT_SECONDS = 3600
_NEXT = "Next, in another terminal: bridgehead call bitburner list_servers"
_FAULTS = (
    "what goes wrong and how often, such as late=0.3,delay=1,drop=0.05: silence, late, out_of_order, drop, "
    "garbage, nonsense, huge as shares from 0 to 1; delay in seconds, padding in bytes, times"
)


def simulate(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Run the simulated game until a signal; return the exit status."""
    parser = Parser(prog="bridgehead bitburner simulate", description=_ABOUT)
    parser.add_argument(
        "--url",
        type=parse_url,
        # Where a bridge with the same settings listens.
        default=f"ws://{BitburnerSettings.listen.read(environment)}".replace("//0.0.0.0:", "//127.0.0.1:"),
        help="where the bridge listens (default: %(default)s)",
    )
    parser.add_argument(
        "--generation", type=int, choices=(2, 3), default=3, help="of the game (default: %(default)s)"
    )
    parser.add_argument(
        "--files",
        type=Path,
        metavar="FOLDER",
        help="the files of the home server, which are only read (default: two first scripts)",
    )
    parser.add_argument("--faults", default="", help=_FAULTS)
    parser.add_argument("--seed", type=int, default=0, help="makes the faults repeatable")
    parser.add_argument(
        "--origin",
        default=PAGE,
        help="the origin of the game; '' is the desktop build (default: %(default)s)",
    )
    parser.add_argument(
        "--reconnect",
        type=number(float, 0, MAX_RECONNECT_SECONDS),
        metavar="SECONDS",
        help="until it reconnects after a drop; 0 is never",
    )
    options = parser.parse_args(arguments)
    chosen_faults = faults.parse(options.faults)
    folder = (
        read_folder(options.files, options.generation)
        if options.files is not None
        else GameFolder({**STARTER}, ())
    )
    asyncio.run(_simulate(options, chosen_faults, folder))
    return 0


def parse_url(text: str) -> str:
    """Return a WebSocket address; raises argparse's error for anything else."""
    try:
        parse_uri(text)
    except (InvalidURI, ValueError) as failure:  # ValueError: a port that does not exist
        raise ArgumentTypeError(f"{text!r} is no address of a WebSocket") from failure
    return text


async def _simulate(options: Namespace, chosen_faults: faults.Faults, folder: GameFolder) -> None:
    title = f"A simulated game of generation {options.generation}"
    # Signals first: a test or script that reads the first line may end the process right then.
    with shutdown_signals() as stop, Screen(Console(), title, _NEXT) as screen:
        if folder.left_out:
            screen.show_state(f"Left out, as the game takes no such files: {', '.join(folder.left_out)}")
        files: dict[str, dict[str, str]] = {**{host: {} for host in HOSTS}, HOME: folder.files}
        game = Game(options.generation, files, chosen_faults, seed=options.seed, watcher=screen.show)
        playing = asyncio.create_task(_play(game, options, screen))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({playing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in (playing, stopping):
            task.cancel()
        await asyncio.wait({playing, stopping})
        await game.hang_up()
        if not playing.cancelled():
            playing.result()


async def _play(game: Game, options: Namespace, screen: Screen) -> None:
    """Dial until a bridge listens, and again after each drop if the game reconnects."""
    if options.reconnect is not None:
        pause = float(options.reconnect)
    else:
        pause = 0.0 if options.generation == 2 else RECONNECT_SECONDS  # noqa: PLR2004 - the generation's number
    screen.show_state(f"Dialling {options.url}")
    while True:
        if await game.dial(options.url, options.origin or None):
            screen.show_state(f"Connected to {options.url}")
            await game.wait_closed(timeout=None)
            screen.show_state(f"Disconnected: {_why(game)}")
            if not pause:
                screen.show_state("Generation 2 does not dial again by itself; --reconnect 2 would.")
                return
        else:
            screen.show_state(f"No bridge at {options.url} yet: {_why(game)}")
        await asyncio.sleep(pause or RECONNECT_SECONDS)


def _why(game: Game) -> str:
    code, reason = game.closed or (0, "")
    return reason if reason and code == ABNORMAL else f"{reason or 'no reason given'} ({code})"
