"""Entries: how a server is written for a client, and how an entry is known as one of ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PureWindowsPath
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from .bridges import NAMES
from .clients import Client
from .needs import Needs

ALL = "bridgehead"
"""The name of the one server that has the tools of all bridges."""
_URLS = ("url", "httpUrl", "serverUrl")
_OURS = {"type", "command", "args", "env", "env_vars", "headers", *_URLS} | {
    "bearer_token_env_var",
    "http_headers",
    "env_http_headers",
}
"""What an entry says about how its server is reached; everything else in it was added by someone else."""


class Token(Struct, frozen=True):
    """The token of a server: the variable that holds it, and its value if that is to be written."""

    variable: str
    value: str = ""


def local(client: Client, command: tuple[str, ...], needs: Needs, *, write_secrets: bool) -> dict[str, Any]:
    """Return the entry of a server that the client starts."""
    program, *arguments = command
    entry: dict[str, Any] = {"type": client.stdio_type} if client.stdio_type else {}
    entry |= {"command": program, "args": arguments}
    variables = dict(needs.variables)
    if write_secrets:
        variables |= needs.secrets
    elif client.reference:
        variables |= {name: client.reference.format(name) for name in needs.secrets}
    if variables:
        entry["env"] = variables
    if client.form == "toml" and needs.secrets and not write_secrets:
        entry["env_vars"] = list(needs.secrets)
    return entry


def remote(client: Client, url: str, token: Token | None) -> dict[str, Any]:
    """Return the entry of a server that runs elsewhere."""
    entry: dict[str, Any] = {"type": client.http_type} if client.http_type else {}
    entry[client.url_field] = url
    if token is None:
        return entry
    if token.value:
        field = "http_headers" if client.form == "toml" else "headers"
        entry[field] = {"Authorization": f"Bearer {token.value}"}
    elif client.form == "toml":
        entry["bearer_token_env_var"] = token.variable
    elif client.reference:
        entry["headers"] = {"Authorization": f"Bearer {client.reference.format(token.variable)}"}
    return entry


def can_refer(client: Client) -> bool:
    """Tell whether a client's file can name a variable instead of its value."""
    return bool(client.reference) or client.form == "toml"


def merged(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry that says what the new one says and keeps what others added to the old one."""
    if old is None:
        return dict(new)
    entry = dict(new)
    if "command" in old and "command" in new:
        variables = {**_mapping(old.get("env")), **_mapping(new.get("env"))}
        given = _mapping(new.get("env_vars") and dict.fromkeys(new["env_vars"]))
        if variables := {name: value for name, value in variables.items() if name not in given}:
            entry["env"] = variables
    return entry | {name: value for name, value in old.items() if name not in _OURS}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def is_ours(entry: Any) -> bool:
    """Tell whether an entry starts a bridge, or reaches one that is served."""
    if not isinstance(entry, Mapping):
        return False
    if isinstance(entry.get("command"), str):
        arguments = [part for part in entry.get("args") or () if isinstance(part, str)]
        programs = [PureWindowsPath(part).name.lower() for part in (entry["command"], *arguments)]
        return bool({*arguments[-1:]} & {*NAMES}) or any(name.startswith(ALL) for name in programs)
    urls = [entry[field] for field in _URLS if isinstance(entry.get(field), str)]
    return any(urlsplit(url).path.endswith("/mcp") for url in urls)
