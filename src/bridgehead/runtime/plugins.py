"""Plugins: which bridges there are, and how the manifest of each is loaded.

A built-in bridge is a package of this distribution with a `bridge.py` beside its `settings.py`. Its name is
never searched for, because every server starts through here.
"""

# ruff: noqa: PTH113, PTH118, PTH208 - pathlib would delay a server's first answer

from __future__ import annotations

import os
import re
from importlib import import_module

import bridgehead

from .errors import BridgeError
from .manifest import Manifest

NAME = re.compile(r"[a-z][a-z0-9_-]*")


class UnknownBridge(BridgeError):
    """There is no bridge of a name."""

    code = "unknown_bridge"

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown bridge {name!r}.", next_step=f"Available: {', '.join(names())}.")


def is_built_in(name: str) -> bool:
    """Tell whether a name is that of a bridge of this distribution."""
    package = os.path.join(bridgehead.__path__[0], name)
    return NAME.fullmatch(name) is not None and all(
        os.path.isfile(os.path.join(package, module)) for module in ("bridge.py", "settings.py")
    )


def built_in_names() -> tuple[str, ...]:
    """Return the names of the bridges of this distribution."""
    return tuple(sorted(name for name in os.listdir(bridgehead.__path__[0]) if is_built_in(name)))


def names() -> tuple[str, ...]:
    """Return the names of all bridges, without importing one."""
    return built_in_names()


def load(name: str) -> Manifest:
    """Load the manifest of a bridge."""
    if not is_built_in(name):
        raise UnknownBridge(name)
    manifest: Manifest = import_module(f"bridgehead.{name}.bridge").manifest
    return manifest
