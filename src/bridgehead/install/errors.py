"""Errors of an installation. When one is raised, nothing was written."""

from __future__ import annotations

from bridgehead.runtime.errors import BridgeError


class InstallError(BridgeError):
    """A configuration cannot be written as requested."""

    code = "install"


class Malformed(Exception):
    """A text breaks its format at this line and column, counted from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"{line}:{column}: {message}")
        self.message = message
        self.line = line
        self.column = column


def malformed(message: str, text: str, position: int) -> Malformed:
    """Make the error for a position in a text, counting lines and columns as editors do."""
    before = text[:position].replace("\r\n", "\n").replace("\r", "\n")
    return Malformed(message, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
