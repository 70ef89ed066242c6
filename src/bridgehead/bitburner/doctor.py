"""Doctor: finds out what is right and what is wrong between this machine and the game, for one screen."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.findings import Finding, settings_finding
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.timing import SystemClock

from .game.connection import GUEST
from .game.counters import GameCounters
from .game.sharing import peer_auth
from .session import Session, open_session
from .settings import BitburnerSettings
from .tools import saves

if TYPE_CHECKING:
    from pathlib import Path

WAIT_SECONDS = 2.0
"""How long `bridgehead doctor` waits for a game; `bridgehead bitburner doctor --wait` waits longer."""
_OTHERS = 0o077


async def examine(environment: Mapping[str, str], wait: float = WAIT_SECONDS) -> list[Finding]:
    """Look at everything, waiting so many seconds for a game to dial in."""
    settings = BitburnerSettings({"MCP_LOG_LEVEL": "error", **environment})
    found = [settings_finding(BitburnerSettings(environment), environment), *_check_folders(settings)]
    try:
        async with open_session(settings, GameCounters(Metrics()), SystemClock()) as session:
            if not session.connection.problem:
                await session.connection.wait_for_game(wait)
            found.append(_check_port(session))
            if not session.connection.problem:  # said already, and nothing else can be found out
                found += [_check_listener(session), _check_game(session, wait)]
            if session.connection.link is not None:
                found.append(await _check_generation(session))
            found.append(_list_origins(session))
    except BridgeError as error:
        found.append(Finding("listener", "wrong", error.message, error.next_step))
    return [*found, _describe_permission(settings)]


def _check_folders(settings: BitburnerSettings) -> list[Finding]:
    from .changes.history import History

    found = []
    try:
        found.append(_check_folder("state", peer_auth.key_path(settings).parent))
        backups = History(settings, SystemClock())
        if backups.is_on:
            found.append(_check_folder("backups", backups.folder))
            found.append(_check_folder("saves", saves.folder(settings)))
        else:
            advice = "Unset BITBURNER_BACKUP_DIR to have previous contents kept."
            found.append(Finding("backups", "note", "off: an overwritten file is lost", advice))
    except BridgeError as error:
        found.append(Finding("folders", "wrong", error.message, error.next_step))
    return found


def _check_folder(what: str, folder: Path) -> Finding:
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not os.access(folder, os.W_OK):
        return Finding(what, "wrong", f"{folder} cannot be written to", "Choose another folder.")
    if os.name != "nt" and mode & _OTHERS:
        advice = f"chmod 700 {folder}"
        return Finding(what, "note", f"{folder} can be looked into by other users ({mode:o})", advice)
    return Finding(what, "right", str(folder))


def _check_port(session: Session) -> Finding:
    connection, settings = session.connection, session.settings
    if settings.rpc_url is not None:
        return Finding(
            "port", "note", f"not used: BITBURNER_RPC_URL is set, so the bridge dials {connection.address}"
        )
    if connection.problem:
        problem, _, advice = connection.problem.partition(". ")
        return Finding("port", "wrong", f"{problem.rstrip('.')}.", advice)
    if connection.role == GUEST:
        return Finding("port", "right", f"{connection.address} is held by another bridge of yours")
    return Finding("port", "right", f"{connection.address} is free")


def _check_listener(session: Session) -> Finding:
    connection = session.connection
    if connection.role == GUEST:
        return Finding("listener", "right", "that bridge answers and shares its game")
    scheme = "wss" if session.settings.tls_cert else "ws"
    return Finding("listener", "right", f"opened for {scheme} during this check, then closed again")


def _check_game(session: Session, wait: float) -> Finding:
    connection = session.connection
    if connection.link is not None:
        return Finding("game", "right", f"connected, from {connection.game}")
    refused = ", one was refused" if connection.refused else ""
    return Finding(
        "game", "wrong", f"none connected within {wait:g} s{refused}", connection.describe_next_step()
    )


async def _check_generation(session: Session) -> Finding:
    try:
        generation = await session.remote.detect_generation()
    except BridgeError as error:
        return Finding("generation", "wrong", error.message, error.next_step)
    if generation.startswith("3"):
        return Finding("generation", "right", f"{generation}: every tool works")
    advice = "get_file_metadata needs 3.0, backup_save 2.8, list_servers 2.6."
    return Finding("generation", "note", f"{generation}: some tools need a newer game", advice)


def _list_origins(session: Session) -> Finding:
    return Finding("may dial in", "right", ", ".join(session.settings.allowed_origins))


def _describe_permission(settings: BitburnerSettings) -> Finding:
    if settings.read_only:
        return Finding("permission", "right", "reading only: no tool that writes is offered")
    asks = "after asking the user" if settings.confirm_delete else "without asking the user"
    return Finding("permission", "right", f"reading, writing, and deleting {asks} where the client can ask")
