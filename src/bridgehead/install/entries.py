"""Entries: builds a server's entry for a client, merges it with an old one, and recognizes our entries."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from bridgehead.runtime import bridge_files, plugins
from bridgehead.runtime.env_file import narrow
from bridgehead.runtime.settings import Setting, Settings

from .clients import Client

_TRANSPORT_SETTINGS = ("MCP_TRANSPORT", "MCP_SERVER_HOST", "MCP_SERVER_PORT")
"""Never written: a server that a client starts talks to that client over stdio."""
_LONGEST_PREFIX = 20
"""Characters of a server's name that go before its tools; a tool's name may have 64 in all."""
ALL = "bridgehead"
"""Name of the server that offers the tools of all bridges."""
URLS = ("url", "httpUrl", "serverUrl")
_OURS = {"type", "command", "args", "env", "env_vars", "headers", *URLS} | {
    "bearer_token_env_var",
    "http_headers",
    "env_http_headers",
}
"""Fields that we write; every other field of an entry belongs to the user or the client."""


class ServerEnvironment(Struct, frozen=True):
    """The settings that differ from their defaults, split into plain variables and secrets."""

    variables: dict[str, str]
    secrets: dict[str, str]
    missing: tuple[str, ...]
    """Declared secrets that are not set."""


def read_server_environment(declared: type[Settings], environment: Mapping[str, str]) -> ServerEnvironment:
    """Return the environment for a server with these settings; raises SettingError if it could not start."""
    settings = declared(narrow(environment, declared.declared))
    secrets = [setting.name for setting in declared.declared if setting.is_secret]
    needs = ServerEnvironment({}, {}, tuple(name for name in secrets if name not in settings.configured))
    for setting in declared.declared:
        value = settings.values[setting.name]
        if (
            setting.name not in settings.configured
            or setting.name in _TRANSPORT_SETTINGS
            or value == setting.default
        ):
            continue
        # The client starts the server in another folder, so paths are written in full.
        is_path = isinstance(value, PurePath) or (isinstance(value, str) and Path(value).is_absolute())
        kind = needs.secrets if setting.is_secret else needs.variables
        kind[setting.name] = str(value) if is_path else environment[setting.name].strip()
    return needs


def add_tool_prefix(needs: ServerEnvironment, declared: type[Settings], name: str, old: Any) -> str:
    """Add a tool prefix made of the server's name; return its variable, or "" if none was added.

    A prefix that the user has set, in the environment or in the existing entry, is kept.
    """
    setting: Setting[str] | None = getattr(declared, "tool_prefix", None)
    if setting is None or setting.name in needs.variables or setting.name in mapping(old, "env"):
        return ""
    prefix = name.replace("-", "_").strip("_")[:_LONGEST_PREFIX]
    needs.variables[setting.name] = f"_{prefix}_" if prefix[:1].isdigit() else f"{prefix}_"
    return setting.name


class Token(Struct, frozen=True):
    """A server's token: the variable that holds it, and its value if the file is to contain it."""

    variable: str
    value: str = ""


def local(
    client: Client, command: tuple[str, ...], needs: ServerEnvironment, *, write_secrets: bool
) -> dict[str, Any]:
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
    # Codex, the TOML client, names the variables to pass on instead of referring to them.
    if client.form == "toml" and needs.secrets and not write_secrets:
        entry["env_vars"] = list(needs.secrets)
    return entry


def remote(client: Client, url: str, token: Token | None) -> dict[str, Any]:
    """Return the entry of a server at a URL."""
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
    """Return the new entry, with the fields and variables that others added to the old one."""
    if old is None:
        return dict(new)
    entry = dict(new)
    if "command" in old and "command" in new:
        # A variable that is passed on now must not stay in `env`, where its old value would override it.
        passed = _list(new, "env_vars")
        kept = {name: value for name, value in mapping(old, "env").items() if name not in passed}
        entry["env"] = {**kept, **mapping(new, "env")}
        others = [item for item in _list(old, "env_vars") if item not in passed and item not in entry["env"]]
        entry["env_vars"] = [*others, *passed]
        entry = {name: value for name, value in entry.items() if value or name in new}
    return entry | {name: value for name, value in old.items() if name not in _OURS}


def variables_of(entry: Any) -> set[str]:
    """Return the variables that an entry sets or passes on."""
    return {*mapping(entry, "env"), *_list(entry, "env_vars")}


def mapping(entry: Any, field: str) -> Mapping[str, Any]:
    """Return a field of an entry; empty if it is not a mapping, since anyone may have written it."""
    value = entry.get(field) if isinstance(entry, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _list(entry: Any, field: str) -> list[str]:
    value = entry.get(field) if isinstance(entry, Mapping) else None
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def starts_file(entry: Any) -> str:
    """Return the path and object of the bridge file that a local entry starts; empty without a file."""
    last = _list(entry, "args")[-1:]
    return last[0] if last and bridge_files.is_file(last[0]) else ""


def is_ours(name: str, entry: Any) -> bool:
    """Tell whether an entry starts a bridge or is the URL of one."""
    if not isinstance(entry, Mapping):
        return False
    if isinstance(entry.get("command"), str):
        arguments = _list(entry, "args")
        programs = [PureWindowsPath(part).name.lower() for part in (entry["command"], *arguments)]
        return bool({*arguments[-1:]} & {*plugins.names()}) or any(
            program.startswith(ALL) for program in programs
        )
    # Any server may be at /mcp, so only the entry's name shows that it is ours.
    ends = tuple(f"/{bridge}/mcp" for bridge in plugins.names()) + (("/mcp",) if name == ALL else ())
    for field in URLS:
        with suppress(ValueError):  # a URL that urlsplit refuses, such as one with a variable, is not ours
            if isinstance(entry.get(field), str) and urlsplit(entry[field]).path.rstrip("/").endswith(ends):
                return True
    return False
