"""Server JSON: describes a bridge to the MCP registry, in its format of 2025-12-11.

One description for each bridge. The package is the distribution itself, run by name; where a release has an
address, the bundle is named too, with its checksum.
"""

import hashlib
from pathlib import Path
from typing import Any

from bridgehead.runtime.manifest import Manifest
from bridgehead.runtime.settings import Setting

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
STDIO = {"type": "stdio"}


def describe(
    bridge: Manifest, version: str, bundle: Path, namespace: str, releases: str = ""
) -> dict[str, Any]:
    """Describe a bridge; `releases` is the address of the folder that the bundle will be downloaded from.

    The publisher signs in to the namespace, and the package's page names the server as `mcp-name:`.
    """
    packages = [_by_name(bridge, version)]
    if releases:
        packages.append(_bundled(bundle, releases))
    return {
        "$schema": SCHEMA,
        "name": f"{namespace}/bridgehead-{bridge.name}",
        "title": f"Bridgehead: {bridge.title}",
        "description": bridge.description,
        "version": version,
        "packages": packages,
    }


def _by_name(bridge: Manifest, version: str) -> dict[str, Any]:
    declared = {setting.name: setting for setting in bridge.settings.declared}
    return {
        "registryType": "pypi",
        "identifier": "bridgehead",
        "version": version,
        "runtimeHint": "uvx",
        "transport": STDIO,
        "packageArguments": [{"type": "positional", "value": bridge.name}],
        "environmentVariables": [
            _variable(declared[field.variable], is_required=field.is_required) for field in bridge.form
        ],
    }


def _variable(setting: Setting[Any], *, is_required: bool) -> dict[str, Any]:
    variable: dict[str, Any] = {
        "name": setting.name,
        "description": setting.about.replace("`", ""),
        "isRequired": is_required,
        "isSecret": setting.is_secret,
    }
    if setting.default is not None and not is_required:
        variable["default"] = setting.shown_default
    return variable


def _bundled(bundle: Path, releases: str) -> dict[str, Any]:
    return {
        "registryType": "mcpb",
        "identifier": f"{releases.rstrip('/')}/{bundle.name}",
        "fileSha256": hashlib.sha256(bundle.read_bytes()).hexdigest(),
        "transport": STDIO,
    }
