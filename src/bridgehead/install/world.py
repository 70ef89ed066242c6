"""World: what an installation has to know of the machine it runs on, as one value."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

from msgspec import Struct


class World(Struct, frozen=True):
    """A machine: its system, as `sys.platform` names it, and where a person works on it."""

    platform: str
    home: str
    folder: str
    environment: Mapping[str, str]

    @classmethod
    def here(cls, environment: Mapping[str, str]) -> World:
        """Describe the machine that this runs on."""
        home = environment.get("USERPROFILE" if sys.platform == "win32" else "HOME") or str(Path.home())
        return cls(sys.platform, home, str(Path.cwd()), environment)

    @property
    def is_windows(self) -> bool:
        """Tell whether paths and programs are those of Windows."""
        return self.platform == "win32"

    def path(self, *parts: str) -> PurePath:
        """Return a path as this system writes it."""
        return PureWindowsPath(*parts) if self.is_windows else PurePosixPath(*parts)

    def root(self, name: str) -> PurePath:
        """Return a folder that configuration files are named from."""
        variable, fallback = {
            "home": ("", self.path(self.home)),
            "project": ("", self.path(self.folder)),
            "config": ("XDG_CONFIG_HOME", self.path(self.home, ".config")),
            "roaming": ("APPDATA", self.path(self.home, "AppData", "Roaming")),
            "local": ("LOCALAPPDATA", self.path(self.home, "AppData", "Local")),
            "support": ("", self.path(self.home, "Library", "Application Support")),
            "claude": ("CLAUDE_CONFIG_DIR", self.path(self.home)),
            "codex": ("CODEX_HOME", self.path(self.home, ".codex")),
        }[name]
        named = self.path(self.environment.get(variable, "")) if variable else fallback
        # A relative one would mean another place to the client.
        return named if named.is_absolute() else fallback
