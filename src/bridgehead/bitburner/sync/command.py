"""Command: `bridgehead bitburner sync FOLDER`; prints a line for each change."""

from __future__ import annotations

import asyncio
import signal
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from bridgehead.mcp import run_on_loop
from bridgehead.runtime.command_line import Parser, number
from bridgehead.runtime.errors import BridgeError, InvalidArgument
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.timing import SystemClock

from ..game import paths
from ..game.counters import GameCounters
from ..session import Session, open_session
from ..settings import BitburnerSettings
from .engine import Event, Sync
from .folder import Folder
from .planning import Action, Rules

_ABOUT = """\
Syncs a folder on this machine with the game, in both directions, until you press Ctrl+C.

Whatever is overwritten on either side can be restored with restore_file. If both sides have changed a file,
both versions are kept. Nothing is deleted without --delete. The game's definitions and a tsconfig.json are
added to the folder, so that an editor completes ns.

  bridgehead bitburner sync scripts
  bridgehead bitburner sync scripts --pull
  bridgehead bitburner sync scripts --server home --server pserv-0 --dry-run
  bridgehead bitburner sync scripts --to pserv-0 --to pserv-1
"""
_MAX_NAMED = 10
MAX_WAIT_SECONDS = 3600.0
_SIGNS = {
    "push": ("→ game", "green"),
    "pull": ("← game", "cyan"),
    "delete_game": ("× game", "yellow"),
    "delete_local": ("× here", "yellow"),
    "conflict": ("! both", "red"),
    "held": ("· held", "yellow"),
    "failed": ("! error", "red"),
    "skip": ("· skip", "dim"),
    "agree": ("= same", "dim"),
}


def add_parser(commands: object) -> None:
    """Add the command to those of the bridge."""
    parser: Parser = commands.add_parser(  # type: ignore[attr-defined]
        "sync", help="sync a folder on this machine with the game", description=_ABOUT
    )
    parser.add_argument("folder", type=Path, help="the folder on this machine; created if it does not exist")
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument("--pull", action="store_true", help="only copy from the game, once")
    direction.add_argument("--push", action="store_true", help="only copy to the game, once")
    parser.add_argument("--dry-run", action="store_true", help="show what would be done")
    parser.add_argument(
        "--delete",
        action="store_true",
        help="also delete on the other side; asks first if it is more than 20 files or 10 %% of them",
    )
    parser.add_argument("--yes", action="store_true", help="with --delete: do not ask")
    parser.add_argument(
        "--server",
        action="append",
        metavar="NAME",
        help="a server; with several, each has a subfolder (default: home)",
    )
    parser.add_argument(
        "--to",
        action="append",
        metavar="NAME",
        help="also copy every file to this server; repeat it for several",
    )
    parser.add_argument(
        "--wait",
        type=number(float, 0, MAX_WAIT_SECONDS),
        default=60.0,
        metavar="SECONDS",
        help="how long to wait for a game (default: 60)",
    )


def run(options: Namespace, environment: Mapping[str, str]) -> int:
    """Run the command and return the exit status."""
    settings = BitburnerSettings({"MCP_LOG_LEVEL": "error", **environment})
    servers = tuple(dict.fromkeys(map(paths.validate_server, options.server or (paths.HOME,))))
    copies = tuple(dict.fromkeys(map(paths.validate_server, options.to or ())))
    if copies and (len(servers) > 1 or options.pull or servers[0] in copies):
        raise InvalidArgument(
            "--to copies the files of one server to others.",
            next_step="Give --server once at most, other servers with --to, and no --pull.",
        )
    folder = Folder(options.folder.resolve(), servers, max_bytes=settings.write_max_bytes)
    console = Console(highlight=False)
    try:
        with folder.locked():
            return run_on_loop(_run(settings, folder, copies, options, console))
    except BridgeError as error:
        console.print(f"[red]{error}[/red]", soft_wrap=True)
        return 1


async def _run(
    settings: BitburnerSettings,
    folder: Folder,
    copies: tuple[str, ...],
    options: Namespace,
    console: Console,
) -> int:
    rules = Rules("pull" if options.pull else "push" if options.push else "both", options.delete)
    async with open_session(settings, GameCounters(Metrics()), SystemClock()) as session:
        connection = session.connection
        if connection.link is None:
            waiting = f"Waiting up to {options.wait:g} s for the game to connect …"
            # `console.status` prints nothing outside of a terminal, and a log needs the line too.
            if not console.is_terminal:
                console.print(waiting)
            with console.status(waiting):
                await connection.wait_for_game(options.wait)
        if connection.link is None:
            console.print(f"[red]{connection.make_not_connected()}[/red]", soft_wrap=True)
            return 1
        comparing = console.status("Comparing both sides …")

        is_first = True

        async def ask(deletes: list[Action], files: int) -> bool:
            # While the sync runs it has no prompt: deletes are held back, and asked about at the next start.
            if options.yes or not is_first:
                return bool(options.yes)
            comparing.stop()
            return await _ask(console, deletes, files)

        sync = Sync(session, folder, rules, lambda event: _show(console, event), ask=ask, copies=copies)
        if options.dry_run:
            planned = await sync.plan()
            for action in planned:
                if action.kind != "agree":
                    _show(console, Event(action.kind, action.place, action.why))
            changes = sum(action.changes_something for action in planned)
            console.print(f"{changes} changes would be made; nothing was changed.")
            return 0
        # Before the files: an editor that opens one can already complete ns.
        folder.write_definitions(await session.remote.get_definitions())
        with comparing:
            actions = await sync.run_once()
        is_first = False
        for name, why in sorted(folder.left_out.items()):
            console.print(f"[dim]· skip   {name}  ({why})[/dim]", soft_wrap=True)
        sent, received, conflicts = (
            sum(action.kind == kind for action in actions) for kind in ("push", "pull", "conflict")
        )
        console.print(f"Sent {sent}, received {received}, in conflict {conflicts}.", soft_wrap=True)
        if rules.mode != "both":
            return int(conflicts > 0)
        await _sync_until_signal(sync, session, console)
        return 0


async def _ask(console: Console, deletes: list[Action], files: int) -> bool:
    """Ask whether so many files may be deleted; without a terminal the answer is no."""
    for title, kind in (("in the game", "delete_game"), ("here", "delete_local")):
        names = [action.place[1] for action in deletes if action.kind == kind]
        if names:
            more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
            console.print(
                f"To delete {title}: {', '.join(names[:_MAX_NAMED])}{more}", soft_wrap=True, markup=False
            )
    question = f"Delete {len(deletes)} of {files} files? They are kept for restore_file."
    if not console.is_terminal:
        console.print(f"{question} Not without --yes; they were not deleted.", soft_wrap=True)
        return False
    answer = await asyncio.to_thread(console.input, f"{question} [y/N] ", markup=False)
    return answer.strip().lower() in ("y", "yes")


async def _sync_until_signal(sync: Sync, session: Session, console: Console) -> None:
    """Sync until a signal arrives."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    # `signal.signal`, because Windows' loop has no `add_signal_handler`.
    for end in (signal.SIGINT, signal.SIGTERM):
        signal.signal(end, lambda *_: loop.call_soon_threadsafe(stop.set))
    running = asyncio.create_task(sync.run())
    stopping = asyncio.create_task(stop.wait())
    with console.status("") as status:

        def refresh() -> None:
            state = "in step" if session.connection.link is not None else "waiting for the game to come back"
            status.update(f"{sync.files} files, {state}; Ctrl-C ends")

        refresh()
        session.connection.on_change.append(refresh)
        session.writer.on_change.append(lambda _: refresh())
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    for task in (running, stopping):
        task.cancel()
    await asyncio.gather(running, stopping, return_exceptions=True)


def _show(console: Console, event: Event) -> None:
    sign, style = _SIGNS[event.kind]
    server, filename = event.place
    name = filename if server == paths.HOME else f"{server}/{filename}"
    detail = f"  ({event.detail})" if event.detail else ""
    console.print(f"[{style}]{sign:8}[/{style}] {name}{detail}", soft_wrap=True)
