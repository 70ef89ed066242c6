"""Serve: the mercury bridge as a process, over stdio or HTTP as the settings say."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bridgehead.runtime.offering import offered

from .bridge import make
from .settings import MercurySettings

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from bridgehead.mcp import Bridge

    from .calling.service import Service


def run(environment: Mapping[str, str]) -> int:
    """Serve until the client goes or the process is told to end; returns the exit code."""
    settings = MercurySettings(environment)
    bridge = offered(make(settings, settings.configure_logs), environment)
    if settings.transport == "http":
        return _run_http(bridge, settings)
    from bridgehead.mcp import stdio

    return stdio.run(bridge, loop_factory=_loop)


def _loop() -> AbstractEventLoop:
    """Make the loop: this bridge lives on sockets, and a call adds a third less time on one for these."""
    from bridgehead.mcp.process import socket_loop

    return socket_loop()


def _run_http(bridge: Bridge[Service], settings: MercurySettings) -> int:
    from bridgehead.mcp.http import application, run
    from bridgehead.mcp.http.guard import LOOPBACK

    app = application(bridge, allowed_hosts={*LOOPBACK, settings.host})
    try:
        run(app, settings.host, settings.port)
    except OSError as problem:
        where, why = f"{settings.host}:{settings.port}", problem.strerror or problem
        sys.stderr.write(f"bridgehead mercury: cannot listen on {where}: {why}\n")
        return 1
    return 0
