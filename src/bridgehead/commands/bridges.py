"""Bridges: each made as a client would get it, loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridgehead.mcp import Bridge
from bridgehead.runtime import plugins
from bridgehead.runtime.offering import offered


def make_bridge(name: str, environment: Mapping[str, str]) -> Bridge[Any]:
    """Make a bridge with those of its tools that the environment lets be offered; may raise SettingError."""
    manifest = plugins.load(name)
    return offered(manifest.make(manifest.settings(environment), None), environment)
