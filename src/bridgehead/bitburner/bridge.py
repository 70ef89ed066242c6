"""The bitburner bridge: its manifest, tools, resources and prompts. Nothing runs before it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridgehead import __version__
from bridgehead.mcp import Bridge, hide_tools
from bridgehead.runtime.manifest import FarSide, FormField, Kept, Manifest
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.timing import Clock, SystemClock

from .errors import BitburnerDialect
from .game.counters import GameCounters
from .game.setup_steps import WITHOUT_GAME, describe_connect
from .report import report
from .session import Session, open_session
from .settings import OFF, TOOLSETS, BitburnerSettings
from .tools import (
    checks,
    definitions,
    files,
    files_app,
    prompts,
    resources,
    restores,
    saves,
    scripts,
    search,
    servers,
    status,
    writes,
)
from .tools.declaring import CallObserver, ToolDeclarer

if TYPE_CHECKING:
    from bridgehead.runtime.findings import Report

INSTRUCTIONS = """\
Files of a running game of Bitburner, and what its scripts cost in RAM. Nothing here runs a script. If a \
call says that the game is not connected, show the user the steps it gives. connection_status tells how \
things stand. Look API functions up with search_definitions. Read a file before you replace it with \
write_file: the player or another agent may have changed it. restore_file brings back what was replaced, \
deleted or lost with an older save."""

_NOUNS = (status, files, search, writes, restores, scripts, checks, definitions, servers, saves, files_app)


def make_bridge(
    settings: BitburnerSettings, *, metrics: Metrics | None = None, clock: Clock | None = None
) -> Bridge[Session]:
    """Build the bridge; the port opens when it is served."""
    counted = metrics or Metrics()
    counters = GameCounters(counted)

    bridge: Bridge[Session] = Bridge(
        "bitburner",
        __version__,
        title="Bitburner",
        description="The files of a running game of Bitburner",
        instructions=INSTRUCTIONS,
        lifespan=lambda: open_session(settings, counters, clock or SystemClock(), bridge),
        dialect=BitburnerDialect(),
        # Words for Claude Code's tool search; no model sees them.
        tool_meta={"anthropic/searchHint": "Bitburner game scripts, Netscript (NS) files, RAM"},
        # Every conversation carries the tool list; an outline is half as long as the full schemas.
        output_schemas="outline",
        changing={"resources"},
        subscribable=True,
        # The contract refuses numbers in quotes. Tests check the declarations; doing it here takes up to 5 ms
        # of the start.
        numeric_strings=False,
        checked=False,
    )
    tools = ToolDeclarer(bridge, keeps_versions=settings.backup_dir != OFF)
    for noun in _NOUNS:
        noun.declare(tools)
    resources.declare(bridge)
    prompts.declare(bridge)
    if settings.read_only:
        hide_tools(bridge, lambda tool: tool.is_read_only, lambda _tool: "BITBURNER_READ_ONLY hides it.")
    TOOLSETS.restrict(bridge, settings.toolsets)
    CallObserver(bridge, counted)
    return bridge


def far_side(session: Session | None) -> FarSide:
    """Report whether a game is connected."""
    if session is None:
        return FarSide(is_up=False, detail="The port is not open yet.")
    if session.connection.link is None:
        return FarSide(is_up=False, detail=str(session.connection.make_not_connected()))
    return FarSide(is_up=True, detail=f"A game is connected, from {session.connection.game}.")


def first_step(settings: BitburnerSettings) -> str:
    """Tell a new user how to connect the game, or a simulated one."""
    return f"{describe_connect(settings, str(settings.listen))} {WITHOUT_GAME}"


async def _report(session: Session) -> Report:
    return await report(session)


manifest = Manifest(
    package=__package__,
    name="bitburner",
    title="Bitburner",
    summary="files of a running game of Bitburner",
    description="Scripts and files of a running game of Bitburner, through its Remote API.",
    keywords=("bitburner", "netscript", "game", "scripting", "javascript"),
    settings=BitburnerSettings,
    make=lambda settings, metrics: make_bridge(settings, metrics=metrics),
    far_side=far_side,
    report=_report,
    first_step=first_step,
    form=(
        FormField("BITBURNER_LISTEN", "Where the game dials in"),
        FormField("BITBURNER_READ_ONLY", "Read only"),
        FormField("BITBURNER_CONFIRM_DELETE", "Ask before a delete"),
    ),
    keeps=(
        Kept("state", "bitburner/backups", "earlier versions of your scripts"),
        Kept("state", "bitburner/saves", "saves of your game"),
        Kept("state", "bitburner/unfinished", "batches of writes that did not end"),
        Kept("state", "bitburner/typescript", "a script checker of version 0.3"),
    ),
    tour=1,
    single_process="A game connects to one process only, and the others would have to ask that one.",
)
