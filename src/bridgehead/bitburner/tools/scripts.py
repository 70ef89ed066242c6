"""Scripts: what the tools say about a script beside its content: its problems, and who imports it."""

from __future__ import annotations

from msgspec import Struct

from ..session import Session


class ScriptProblem(Struct):
    """Something that will fail when the script runs."""

    code: str
    message: str
    line: int
    column: int


async def inspect_script(session: Session, on: str, name: str, content: str) -> list[ScriptProblem]:
    """Look for what the game takes without a word and then fails at."""
    return []


def describe_problems(problems: list[ScriptProblem]) -> str:
    """Say what is wrong, a line for each."""
    return ""


async def find_importers(session: Session, on: str, name: str) -> list[str]:
    """Return the scripts of a server that import a file."""
    return []
