"""A check: owns running one official program to its end and judging what it wrote."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.interop.node import ROOT

SECONDS = 60


@dataclass(frozen=True)
class Check:
    """A program with its arguments, and what its standard output has to be like."""

    name: str
    command: tuple[str, ...]
    judge: Callable[[str], None]
    environment: dict[str, str] = field(default_factory=dict)
    status: int = 0
    """The exit status that is right."""

    def failure(self) -> str | None:
        """Run the program; nothing if all was well, else what was wrong."""
        try:
            done = subprocess.run(
                self.command,
                cwd=ROOT,
                env=os.environ | self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"did not end within {SECONDS} seconds"
        if done.returncode != self.status:
            return f"exit status {done.returncode}: {_last_lines(done.stderr or done.stdout)}"
        return self._judgement(done.stdout)

    def _judgement(self, output: str) -> str | None:
        try:
            self.judge(output)
        except (AssertionError, KeyError, ValueError) as wrong:
            return f"{type(wrong).__name__}: {wrong} in {_last_lines(output)}"
        return None


def _last_lines(output: str) -> str:
    return " | ".join(output.strip().splitlines()[-3:])[-600:]
