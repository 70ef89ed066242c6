"""Wording: what each generation of the game says when it refuses, and when it says nothing at all."""

from __future__ import annotations

from enum import Enum

from .world import World


class Case(Enum):
    """Why a request is refused."""

    UNKNOWN = "the method does not exist"
    PARAMS = "a field is missing or of a wrong type"
    SERVER = "no such server"
    PATH = "not a path"
    EXTENSION = "not an extension of contents"
    MISSING = "no such file"
    NO_SCRIPT = "not a script"
    RUNNING = "the script is running"
    NO_RAM = "the script cannot be read or an import is missing"


class Refusal(Exception):
    """The game answers with an error, which is a plain text."""


class Silence(Exception):
    """The game answers nothing: its own code failed over the request."""


_RUNNING = "Cannot delete a script that is currently running!"
_UNKNOWN = "Unknown message received"
_SECOND = {
    Case.UNKNOWN: _UNKNOWN,
    Case.PARAMS: "Message misses parameters",
    Case.SERVER: "Server hostname invalid",
    Case.PATH: "Invalid file path",
    Case.EXTENSION: "Invalid file extension",
    Case.MISSING: "File doesn't exist",
    Case.NO_SCRIPT: "Filename isn't a script filename",
    Case.RUNNING: _RUNNING,
    Case.NO_RAM: "Ram cost could not be calculated",
}
_SECOND_HERE = {
    (Case.PARAMS, "pushFile"): "Misses parameters",
    (Case.PATH, "deleteFile"): "Invalid filename",
    (Case.PATH, "calculateRam"): "Invalid filename",
}
_THIRD = {
    Case.UNKNOWN: _UNKNOWN,
    Case.PARAMS: "Invalid params: ",
    Case.SERVER: "Invalid hostname: ",
    Case.PATH: "Invalid file path: ",
    Case.EXTENSION: "Invalid file extension. Filename: ",
    Case.MISSING: "File does not exist. Filename: ",
    Case.NO_SCRIPT: "File is not a script. Filename: ",
    Case.RUNNING: _RUNNING,
    Case.NO_RAM: "Cannot calculate RAM usage of an invalid script. Filename: ",
}


def refusal(world: World, case: Case, method: str, subject: str) -> Refusal:
    """Return the refusal in the words of the world's generation; the third names what it is about."""
    if world.is_second:
        return Refusal(_SECOND_HERE.get((case, method), _SECOND[case]))
    text = _THIRD[case]
    return Refusal(text + subject if text.endswith(": ") else text)
