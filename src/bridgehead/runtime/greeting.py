"""Greeting: what a person reads who starts a server by hand in a terminal.

A client that starts a bridge, a service manager and a pipe see nothing of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from bridgehead import __version__

from .command_line import tolerate_encoding


def greet_at_keyboard(name: str, title: str) -> None:
    """Tell whoever typed the name of a bridge that it waits for a client, not for a person."""
    _write(
        (
            f"Bridgehead {__version__}: {title}, waiting for an MCP client on standard input.",
            f"A client starts it by itself once `bridgehead install CLIENT {name}` has added it.",
            f"By hand: `bridgehead tools {name}` lists its tools, `bridgehead call {name} TOOL` calls one.",
            "Ctrl+C ends it.",
        )
    )


def greet_operator(names: Iterable[str], address: str, *, needs_token: bool) -> None:
    """Tell whoever started a host where it is, how to connect, where to look and how to end it."""
    if not sys.stderr.isatty():
        return
    token = "" if needs_token else " --no-token"
    _write(
        (
            f"Bridgehead {__version__} serves {', '.join(names)} at {address}/mcp",
            f"Connect a client: bridgehead install CLIENT --url {address}{token}",
            f"Look at it:       {address}/",
            "Ctrl+C ends it.",
        )
    )


def _write(lines: Iterable[str]) -> None:
    tolerate_encoding(sys.stderr)
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.stderr.flush()
