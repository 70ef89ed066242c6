"""Doctor: check everything between this machine and the game."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.findings import Finding, settings_finding
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.timing import SystemClock

from .changes.history import History
from .game.connection import GUEST
from .game.counters import GameCounters
from .game.setup_steps import WITHOUT_GAME
from .game.sharing import peer_auth
from .session import Session, open_session
from .settings import BitburnerSettings

WAIT_SECONDS = 2.0
"""How long `bridgehead doctor` waits for a game; `bridgehead bitburner doctor --wait` waits longer."""
_OTHERS = 0o077
"""Permission bits of group and others."""


async def examine(environment: Mapping[str, str], wait: float = WAIT_SECONDS) -> list[Finding]:
    """Check everything; wait up to `wait` seconds for a game to dial in."""
    # Quiet unless the user has set a level: log lines would come between the findings.
    settings = BitburnerSettings({"MCP_LOG_LEVEL": "error", **environment})
    findings = [settings_finding(BitburnerSettings(environment), environment)]
    try:
        findings.append(_check_folder("state", peer_auth.key_path(settings).parent))
        backups = History(settings, SystemClock())
        if backups.is_on:
            findings.append(_check_folder("backups", backups.folder))
            findings.append(_check_folder("saves", settings.open_saves_folder()))
        else:
            advice = "Unset BITBURNER_BACKUP_DIR to have previous contents kept."
            findings.append(Finding("backups", "note", "off: an overwritten file is lost", advice))
    except BridgeError as error:
        findings.append(Finding("folders", "wrong", error.message, error.next_step))
    try:
        async with open_session(settings, GameCounters(Metrics()), SystemClock()) as session:
            findings += await _check_session(session, wait)
    except BridgeError as error:
        findings.append(Finding("listener", "wrong", error.message, error.next_step))
    if settings.read_only:
        permission = "reading only: no tool that writes is offered"
    else:
        asks = "after asking the user" if settings.confirm_delete else "without asking the user"
        permission = f"reading, writing, and deleting {asks} where the client can ask"
    return [*findings, Finding("permission", "right", permission)]


def _check_folder(what: str, folder: Path) -> Finding:
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not os.access(folder, os.W_OK):
        return Finding(what, "wrong", f"{folder} cannot be written to", "Choose another folder.")
    if os.name != "nt" and mode & _OTHERS:
        advice = f"chmod 700 {folder}"
        return Finding(what, "note", f"{folder} is readable by other users ({mode:o})", advice)
    return Finding(what, "right", str(folder))


async def _check_session(session: Session, wait: float) -> list[Finding]:
    """Check the port, the listener and the game, waiting up to `wait` seconds for a game."""
    connection, settings = session.connection, session.settings
    if not connection.problem:
        await connection.wait_for_game(wait)
    findings = [_check_port(session)]
    if not connection.problem:  # otherwise the finding about the port says it
        if connection.role == GUEST:
            detail = "that bridge answers and shares its game"
        else:
            scheme = "wss" if settings.tls_cert else "ws"
            detail = f"opened for {scheme} during this check, then closed again"
        findings.append(Finding("listener", "right", detail))
        if connection.link is not None:
            findings.append(Finding("game", "right", f"connected, from {connection.game}"))
        else:
            refused = ", one was refused" if connection.refused else ""
            detail = f"none connected within {wait:g} s{refused}"
            advice = connection.describe_next_step()
            if settings.rpc_url is None:
                advice += f" {WITHOUT_GAME}"
            findings.append(Finding("game", "wrong", detail, advice))
    if connection.link is not None:
        findings.append(await _check_generation(session))
    return [*findings, Finding("may dial in", "right", ", ".join(settings.allowed_origins))]


def _check_port(session: Session) -> Finding:
    connection = session.connection
    if session.settings.rpc_url is not None:
        return Finding(
            "port", "note", f"not used: BITBURNER_RPC_URL is set, so the bridge dials {connection.address}"
        )
    if connection.problem:
        problem, _, advice = connection.problem.partition(". ")
        return Finding("port", "wrong", f"{problem.rstrip('.')}.", advice)
    if connection.role == GUEST:
        return Finding("port", "right", f"{connection.address} is held by another bridge of yours")
    return Finding("port", "right", f"{connection.address} is free")


async def _check_generation(session: Session) -> Finding:
    try:
        generation = await session.remote.detect_generation()
    except BridgeError as error:
        return Finding("generation", "wrong", error.message, error.next_step)
    if generation.startswith("3"):
        return Finding("generation", "right", f"{generation}: every tool works")
    advice = "get_file_metadata needs 3.0, backup_save 2.8, list_servers 2.6."
    return Finding("generation", "note", f"{generation}: some tools need a newer game", advice)
