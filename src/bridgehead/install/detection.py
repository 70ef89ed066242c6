"""Detection: finds the MCP clients on this machine and the bridges in their files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from . import edit, entries, files
from .clients import CLIENTS, Client, Scope
from .errors import InstallError, Malformed
from .machine import Machine


class DetectedClient(Struct, frozen=True):
    """One configuration file of a client, which need not exist yet."""

    client: Client
    scope: Scope
    path: Path
    is_installed: bool
    entries: Mapping[str, Mapping[str, Any]] = {}
    """Our servers in the file, by name."""
    problem: str = ""

    @property
    def bridges(self) -> tuple[str, ...]:
        """Return the names of our servers."""
        return tuple(self.entries)


def detect_clients(machine: Machine) -> Iterator[DetectedClient]:
    """Give the user-scope file of every known client, and the project-scope files that exist."""
    for client in CLIENTS:
        user_path = files.choose(client.places(machine, "user")) if "user" in client.scopes else None
        for scope in client.scopes:
            path = files.choose(client.places(machine, scope))
            if scope == "user":
                # A client that was never configured has no file yet, only its folder.
                is_installed = path.exists() or any(files.exists(sign) for sign in client.signs(machine))
                yield _inspect(client, scope, path, is_installed=is_installed)
            elif path.exists() and path != user_path:  # in the home directory both scopes are one file
                yield _inspect(client, scope, path, is_installed=True)


def _inspect(client: Client, scope: Scope, path: Path, *, is_installed: bool) -> DetectedClient:
    try:
        servers = edit.servers(files.read(path), client.form, client.section)
    except Malformed as failure:
        return DetectedClient(client, scope, path, is_installed, problem=f"broken at {failure}")
    except InstallError as failure:
        return DetectedClient(client, scope, path, is_installed, problem=str(failure))
    ours = {name: entry for name, entry in servers.items() if entries.is_ours(name, entry)}
    return DetectedClient(client, scope, path, is_installed, ours)
