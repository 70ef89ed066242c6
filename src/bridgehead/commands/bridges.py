"""Bridges: those that a command goes over where it was told none."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import Manifest


def load_usable() -> Iterator[Manifest]:
    """Load every bridge; a plugin that cannot be loaded is named, and harms nobody else."""
    for name in plugins.names():
        try:
            yield plugins.load(name)
        except plugins.PluginError as error:
            sys.stderr.write(f"bridgehead: {error}\n")
