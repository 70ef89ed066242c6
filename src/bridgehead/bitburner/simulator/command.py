"""Command: `bridgehead bitburner simulate`, a game for whoever has none at hand."""

from __future__ import annotations

import asyncio
from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from websockets.exceptions import InvalidURI
from websockets.uri import parse_uri

from bridgehead.mcp import shutdown_signals
from bridgehead.runtime.command_line import Parser

from . import faults
from .game import Game
from .paths import Taken, take
from .screen import Screen
from .world import HOME, HOSTS

PAGE = "https://bitburner-official.github.io"
AGAIN = 2.0
_ABOUT = """\
Simulates the game in memory: it connects and answers as the game does.

Generation 3 dials again after a drop. Generation 2 does not, as its player has to press Connect; --reconnect
presses it for you. Stop with Ctrl-C.
"""
_FAULTS = (
    "what goes wrong and how often, such as late=0.3,delay=1,drop=0.05: silence, late, out_of_order, drop, "
    "garbage, nonsense, huge as shares from 0 to 1; delay in seconds, padding in bytes, times"
)


def simulate(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Play until it is told to stop; returns the exit status."""
    options = _parser().parse_args(arguments)
    trouble = faults.parse(options.faults)
    taken = take(options.files, options.generation) if options.files is not None else Taken({}, ())
    asyncio.run(_simulate(options, trouble, taken))
    return 0


def _parser() -> Parser:
    parser = Parser(prog="bridgehead bitburner simulate", description=_ABOUT)
    parser.add_argument(
        "--url", type=_url, default="ws://127.0.0.1:12525", help="where the bridge listens (%(default)s)"
    )
    parser.add_argument("--generation", type=int, choices=(2, 3), default=3, help="of the game (%(default)s)")
    parser.add_argument(
        "--files", type=Path, metavar="FOLDER", help="the files of the home server; they are only read"
    )
    parser.add_argument("--faults", default="", help=_FAULTS)
    parser.add_argument("--seed", type=int, default=0, help="makes the faults repeatable")
    parser.add_argument(
        "--origin", default=PAGE, help="the origin of the game; '' is the desktop build (%(default)s)"
    )
    parser.add_argument(
        "--reconnect", type=float, metavar="SECONDS", help="until it reconnects after a drop; 0 is never"
    )
    return parser


def _url(text: str) -> str:
    try:
        parse_uri(text)
    except InvalidURI as failure:
        raise ArgumentTypeError(f"{text!r} is no address of a WebSocket") from failure
    return text


async def _simulate(options: Namespace, trouble: faults.Faults, taken: Taken) -> None:
    title = f"A simulated game of generation {options.generation}"
    # Signals first: whoever reads the first line may end the process right then.
    with shutdown_signals() as stop, Screen(Console(), title) as screen:
        if taken.left_out:
            screen.tell(f"Left out, as the game takes no such files: {', '.join(taken.left_out)}")
        files: dict[str, dict[str, str]] = {**{host: {} for host in HOSTS}, HOME: taken.files}
        game = Game(options.generation, files, trouble, seed=options.seed, watcher=screen.show)
        await _play_until(stop, game, options, screen)


async def _play_until(stop: asyncio.Event, game: Game, options: Namespace, screen: Screen) -> None:
    """Play until a signal comes, or the game has no reason to go on."""
    playing = asyncio.create_task(_play(game, options, screen))
    told = asyncio.create_task(stop.wait())
    await asyncio.wait({playing, told}, return_when=asyncio.FIRST_COMPLETED)
    for task in (playing, told):
        task.cancel()
    await asyncio.wait({playing, told})
    await game.hang_up()
    if not playing.cancelled():
        playing.result()


async def _play(game: Game, options: Namespace, screen: Screen) -> None:
    """Dial until someone listens, and again after each drop if there is a delay for that."""
    again = _delay(options)
    screen.tell(f"Dialling {options.url}")
    while True:
        if await game.dial(options.url, options.origin or None):
            screen.tell(f"Connected to {options.url}")
            await game.wait_closed(timeout=None)
            screen.tell(f"Disconnected: {_why(game)}")
            if not again:
                screen.tell("Generation 2 does not dial again by itself; --reconnect 2 would.")
                return
        else:
            screen.tell(f"Nobody to talk to at {options.url} yet: {_why(game)}")
        await asyncio.sleep(again or AGAIN)


def _delay(options: Namespace) -> float:
    """Return the seconds to the next dial after a drop, 0 for none."""
    if options.reconnect is not None:
        return float(options.reconnect)
    return 0.0 if options.generation == 2 else AGAIN  # noqa: PLR2004 - the generation's number is its name


def _why(game: Game) -> str:
    code, reason = game.closed or (0, "")
    return f"{reason or 'no reason given'} ({code})"
