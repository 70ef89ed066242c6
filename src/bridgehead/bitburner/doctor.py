"""Doctor: check everything between this machine and the game."""

from __future__ import annotations

from collections.abc import Mapping

from bridgehead.runtime.directories import looking, state_folder
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.findings import Finding, folder_finding, settings_finding
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.timing import SystemClock

from .changes import history
from .game.connection import GUEST
from .game.counters import GameCounters
from .game.setup_steps import WITHOUT_GAME
from .session import Session, open_session
from .settings import OFF, BitburnerSettings


async def examine(environment: Mapping[str, str], wait: float | None = None) -> list[Finding]:
    """Check everything; wait for a game to dial in, as long as a call does unless `wait` has seconds."""
    # Quiet unless the user has set a level: log lines would come between the findings.
    settings = BitburnerSettings({"MCP_LOG_LEVEL": "error", **environment})
    findings = [settings_finding(BitburnerSettings(environment), environment)]
    findings.append(folder_finding("state", state_folder(settings, "bitburner")))
    if settings.backup_dir != OFF:
        findings.append(folder_finding("backups", history.place(settings)))
        findings.append(folder_finding("saves", settings.saves_folder))
    else:
        advice = "Unset BITBURNER_BACKUP_DIR to have previous contents kept."
        findings.append(Finding("backups", "note", "off: an overwritten file is lost", advice))
    try:
        with looking(settings, "bitburner") as own:
            async with open_session(own, GameCounters(Metrics()), SystemClock()) as session:
                seconds = settings.connect_wait_ms / 1000 if wait is None else wait
                findings += await _check_session(session, seconds)
    except BridgeError as error:
        findings.append(Finding("listener", "wrong", error.message, error.next_step))
    if settings.read_only:
        permission = "reading only: no tool that writes is offered"
    else:
        asks = "after asking the user" if settings.confirm_delete else "without asking the user"
        permission = f"reading, writing, and deleting {asks} where the client can ask"
    return [*findings, Finding("permission", "right", permission)]


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
