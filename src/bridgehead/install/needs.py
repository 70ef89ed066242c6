"""Needs: what of an environment a server has to be given, because its client starts it in another one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from bridgehead.runtime.env_file import narrow

if TYPE_CHECKING:
    from bridgehead.runtime.settings import Settings

_OF_SERVING = ("MCP_TRANSPORT", "MCP_SERVER_HOST", "MCP_SERVER_PORT")
"""How a server is reached; one that a client starts is reached by that client alone."""


class Needs(Struct, frozen=True):
    """The variables that are set and say something else than the default, secrets apart."""

    variables: dict[str, str]
    secrets: dict[str, str]
    missing: tuple[str, ...]
    """Secrets that are declared and not set."""


def needs(declared: type[Settings], environment: Mapping[str, str]) -> Needs:
    """Return what a server with these settings needs; raises SettingError where it could not start."""
    settings = declared(narrow(environment, declared.declared))
    secrets = [setting.name for setting in declared.declared if setting.is_secret]
    found = Needs({}, {}, tuple(name for name in secrets if name not in settings.given))
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
