"""Entries: how a server is written for a client, with what it needs, and which entries are ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath, PureWindowsPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct

from bridgehead.runtime import plugins
from bridgehead.runtime.env_file import narrow

from .clients import Client

if TYPE_CHECKING:
    from bridgehead.runtime.settings import Settings

_OF_SERVING = ("MCP_TRANSPORT", "MCP_SERVER_HOST", "MCP_SERVER_PORT")
"""How a server is reached; one that a client starts is reached by that client alone."""
ALL = "bridgehead"
"""The name of the one server that has the tools of all bridges."""
URLS = ("url", "httpUrl", "serverUrl")
_OURS = {"type", "command", "args", "env", "env_vars", "headers", *URLS} | {
    "bearer_token_env_var",
    "http_headers",
    "env_http_headers",
}
"""What an entry says about how its server is reached; everything else in it was added by someone else."""


class ServerEnvironment(Struct, frozen=True):
    """The variables that are set and say something else than the default, secrets apart."""

    variables: dict[str, str]
    secrets: dict[str, str]
    missing: tuple[str, ...]
    """Secrets that are declared and not set."""


def read_server_environment(declared: type[Settings], environment: Mapping[str, str]) -> ServerEnvironment:
    """Return what a server with these settings needs; raises SettingError where it could not start."""
    settings = declared(narrow(environment, declared.declared))
    secrets = [setting.name for setting in declared.declared if setting.is_secret]
    found = ServerEnvironment({}, {}, tuple(name for name in secrets if name not in settings.given))
    for setting in declared.declared:
        value = settings.values[setting.name]
        if setting.name not in settings.given or setting.name in _OF_SERVING or value == setting.default:
            continue
        kind = found.secrets if setting.is_secret else found.variables
        kind[setting.name] = _written(environment[setting.name].strip(), value)
    return found


def _written(text: str, value: Any) -> str:
    """Return a value as a server in another folder has to be told it: paths in full."""
    is_path = isinstance(value, PurePath) or (isinstance(value, str) and Path(value).is_absolute())
    return str(value) if is_path else text


class Token(Struct, frozen=True):
    """The token of a server: the variable that holds it, and its value if that is to be written."""

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
        passed = _list(new, "env_vars")
        kept = {name: value for name, value in mapping(old, "env").items() if name not in passed}
        entry["env"] = {**kept, **mapping(new, "env")}
        others = [item for item in _list(old, "env_vars") if item not in passed and item not in entry["env"]]
        entry["env_vars"] = [*others, *passed]
        entry = {name: value for name, value in entry.items() if value or name in new}
    return entry | {name: value for name, value in old.items() if name not in _OURS}


def variables_of(entry: Any) -> set[str]:
    """Return the names of the variables that an entry gives to its server."""
    return {*mapping(entry, "env"), *_list(entry, "env_vars")}


def mapping(entry: Any, field: str) -> Mapping[str, Any]:
    """Return what a field of an entry holds; nothing where it is not what it should be."""
    value = entry.get(field) if isinstance(entry, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _list(entry: Any, field: str) -> list[str]:
    value = entry.get(field) if isinstance(entry, Mapping) else None
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def is_ours(name: str, entry: Any) -> bool:
    """Tell whether an entry starts a bridge, or reaches one that is served."""
    if not isinstance(entry, Mapping):
        return False
    if isinstance(entry.get("command"), str):
        arguments = _list(entry, "args")
        programs = [PureWindowsPath(part).name.lower() for part in (entry["command"], *arguments)]
        return bool({*arguments[-1:]} & {*plugins.names()}) or any(
            program.startswith(ALL) for program in programs
        )
    # Many servers are at /mcp; only our own name says that it is all of ours.
    ends = tuple(f"/{bridge}/mcp" for bridge in plugins.names()) + (("/mcp",) if name == ALL else ())
    urls = [entry[field] for field in URLS if isinstance(entry.get(field), str)]
    return any(_path(url).endswith(ends) for url in urls)


def _path(url: str) -> str:
    try:
        return urlsplit(url).path.rstrip("/")
    except ValueError:  # someone else's, with a variable in it
        return ""
