"""A desk: a home and a project on disk, and `bridgehead install` typed there."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec import Struct

from bridgehead.install import command
from bridgehead.install.machine import Machine
from bridgehead.runtime import bridge_files
from bridgehead.runtime.manifest import Manifest

from .stand_ins import BRIDGES

CONFIGURATIONS = Path(__file__).parent / "configurations"


_WITH_VALUE = ("--scope", "--path", "--name", "--command", "--url", "--token-env")


class CommandResult(Struct, frozen=True):
    """How a command ended and what it said."""

    status: int
    out: str
    err: str


class Desk:
    """One person's machine."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.program = folder / "bin" / "bridgehead"
        self.program.parent.mkdir()
        self.program.write_text("#!/bin/sh\n", encoding="utf-8")
        self.capsys = capsys

    @property
    def cursor(self) -> Path:
        """The file that most tests look at."""
        return self.home / ".cursor" / "mcp.json"

    def machine(self, environment: Mapping[str, str]) -> Machine:
        return Machine("linux", str(self.home), str(self.project), environment)

    def install(self, *arguments: str, environment: Mapping[str, str] | None = None) -> CommandResult:
        """Type `bridgehead install …`; without a bridge, for all bridges."""
        is_asked = {"--url", "--remove", "--list", "--help"} & {*arguments} or not arguments
        positional = [
            word
            for before, word in zip(("", *arguments), arguments, strict=False)
            if not word.startswith("-") and before not in _WITH_VALUE
        ]
        every = () if is_asked or len(positional) != 1 else ("all",)
        return self.type(*arguments, *every, environment=environment)

    def type(self, *arguments: str, environment: Mapping[str, str] | None = None) -> CommandResult:
        """Type `bridgehead install …` as it is, with a program whose path does not change."""
        needs_command = not {"--url", "--remove", "--list", "--command"} & {*arguments}
        extra = ("--command", str(self.program)) if needs_command else ()
        try:
            status = command.run([*arguments, *extra], self.machine(environment or {}), load)
        except SystemExit as left:
            status = int(left.code or 0)
        said = self.capsys.readouterr()
        return CommandResult(status, said.out, said.err)


def load(target: str) -> Manifest:
    """Load a stand-in, or a file as it is."""
    return bridge_files.load(target) if bridge_files.is_file(target) else BRIDGES[target]


def everything(folder: Path) -> dict[str, bytes]:
    """Every file under a folder, with its content."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def servers(path: Path) -> dict[str, dict[str, object]]:
    """The servers in a file of JSON."""
    found: dict[str, dict[str, object]] = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]
    return found
