"""Clients with a command line: what they say of the bridges after `bridgehead install` in a fresh home."""

import json
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

from tests.interop.check import SECONDS, Check
from tests.interop.node import Package

BRIDGES = ("aoc", "bitburner", "mercury")
COMMAND = str(Path(sysconfig.get_path("scripts"), "bridgehead"))
CLAUDE = Package("@anthropic-ai/claude-code", "2.1.197")
CODEX = Package("@openai/codex", "0.166.0")
GEMINI = Package("@google/gemini-cli", "0.61.0")
CLIENTS = {"claude": (CLAUDE, ".claude"), "codex": (CODEX, ".codex"), "gemini": (GEMINI, ".gemini")}
"""The programs, and the folder by which `bridgehead install all all` finds each."""


def checks(node: str, folder: Path) -> list[Check]:
    """Install into a home with nothing in it, and let each client list its servers."""
    home = folder / "clients"
    for package, sign in CLIENTS.values():
        package.install()
        prepare = package.home / "install.cjs"
        if prepare.exists():  # puts the program in its place; npm was told to run no scripts
            subprocess.run((node, str(prepare)), check=True, capture_output=True, timeout=SECONDS)
        (home / sign).mkdir(parents=True)
    start = ("env", "-i", f"HOME={home}", f"PATH={Path(node).parent}:/usr/bin:/bin")
    subprocess.run(
        (*start, COMMAND, "install", "all", "all"), check=True, capture_output=True, timeout=SECONDS
    )
    # What a person does who follows the advice that install gives for Gemini CLI.
    trusted = json.dumps({str(Path.cwd()): "TRUST_FOLDER"})
    (home / ".gemini" / "trustedFolders.json").write_text(trusted, encoding="utf-8")
    usable = {"claude": "Connected", "codex": "enabled", "gemini": "Connected"}
    return [
        Check(
            name=f"{name} {package.version} lists every bridge as {usable[name].lower()}",
            # One of them lists its servers on standard error.
            command=(*start, "sh", "-c", f"{package.folder}/node_modules/.bin/{name} mcp list 2>&1"),
            judge=_says_of_each_bridge(usable[name]),
        )
        for name, (package, _) in CLIENTS.items()
    ]


def _says_of_each_bridge(state: str) -> Callable[[str], None]:
    def judge(output: str) -> None:
        for bridge in BRIDGES:
            lines = [line for line in output.splitlines() if f"bridgehead {bridge}" in " ".join(line.split())]
            assert any(state in line for line in lines), f"{bridge} is not {state.lower()}"

    return judge
