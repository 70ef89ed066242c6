"""Errors: what stands in the way of an installation. Nothing was written when it is raised."""

from __future__ import annotations

from bridgehead.runtime.errors import BridgeError


class InstallError(BridgeError):
    """A configuration cannot be written as it was asked for."""

    code = "install"


class Malformed(Exception):
    """A text is not what its format says, from this place on."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"{line}:{column}: {message}")
        self.message = message
        self.line = line
        self.column = column


def malformed(message: str, text: str, position: int) -> Malformed:
    """Say where in a text it went wrong, as editors count: lines and columns from 1."""
    before = text[:position].replace("\r\n", "\n").replace("\r", "\n")
    return Malformed(message, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
