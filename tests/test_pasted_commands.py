"""Commands to paste: what documents, help texts and messages print works in every shell as it stands.

zsh, the shell of macOS, runs a trailing comment as arguments, so no command has anything behind it. What a
command does is said above it.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import pytest

from bridgehead.cli import help_text
from bridgehead.commands import COMMANDS
from bridgehead.runtime import plugins
from bridgehead.runtime.command_line import Parser, with_settings
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^ *```(sh|console|bash|powershell)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
PROGRAMS = r"bridgehead|make|python3?|pip|pipx|uvx?|py|docker|curl|npx|export (?=\w+=)|\$env:\w+"
COMMAND = re.compile(rf"^ +((?:[A-Z_]+=\S+ )*(?:{PROGRAMS})(?: .*)?)$", re.MULTILINE)
SOURCES = ("src", "examples", "deploy", "bench", "release")
COMMENT = re.compile(r"(?:^|\s)#(?:\s|$)")
GAP = re.compile(r"\S {2,}\S")
EXPANDED = set("$~*?&|<>;()\\")
"""What a shell replaces or acts on: such a line is not compared with its words."""
OPTIONS = {
    "bash": ["--norc", "--noprofile", "-i"],
    "zsh": ["-f", "-i"],
    "fish": ["--no-config", "--interactive"],
}
SHELLS = [shell for shell in OPTIONS if shutil.which(shell) and os.name != "nt"]


def fences() -> Iterator[tuple[str, str]]:
    """Each block of commands in a document: where it is, and its lines without prompts and output."""
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    documents += [path for name in SOURCES for path in (ROOT / name).rglob("*.md*")]
    for document in sorted(documents):
        for kind, block in FENCE.findall(document.read_text(encoding="utf-8")):
            lines = re.sub(r" *\\\n *", " ", block).splitlines()
            if kind == "console":
                lines = [line.strip()[2:] for line in lines if line.strip().startswith("$ ")]
            for line in lines:
                yield document.relative_to(ROOT).as_posix(), line.strip()


def parsers(parser: Parser) -> Iterator[Parser]:
    yield parser
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list of them
        if action.choices and isinstance(action.choices, dict):
            for below in action.choices.values():
                yield from parsers(below)


def helps() -> Iterator[tuple[str, str]]:
    """The help of every command and of every bridge's commands."""
    yield "bridgehead help", help_text()
    modules = [import_module(module) for module, _ in COMMANDS.values()]
    own = [plugins.load(name).load_commands() for name in plugins.built_in_names()]
    for command in [*modules, *filter(None, own)]:
        for parser in parsers(command.parser()):
            yield f"{parser.prog} --help", parser.format_help()


@cache
def commands() -> tuple[tuple[str, str], ...]:
    with patch.dict(os.environ, COLUMNS="200"):  # a help text breaks lines at the terminal's edge
        printed = [*helps()]
    found = [*fences()]
    for where, text in printed:
        found += [(where, line.strip()) for line in COMMAND.findall(text)]
    for name in ("src", "tasks.py"):
        paths = [ROOT / name] if name.endswith(".py") else (ROOT / name).rglob("*.py")
        for path in paths:
            for line in COMMAND.findall(path.read_text(encoding="utf-8")):
                if not re.match(r"\w+ = ", line):  # an assignment to a variable that is named like a program
                    found.append((path.relative_to(ROOT).as_posix(), line.strip()))
    return tuple(found)


def test_no_printed_command_has_anything_behind_it() -> None:
    behind = [f"{where}: {line}" for where, line in commands() if COMMENT.search(line) or GAP.search(line)]

    assert len(commands()) > 150
    assert behind == []


@pytest.mark.parametrize(("where", "text"), [*helps()], ids=[where for where, _ in helps()])
def test_every_help_has_a_sentence_and_an_example(where: str, text: str) -> None:
    about = text.partition("\n\n")[2]

    assert re.match(r"[A-Z](?s:.*?)\.", about), "it begins with what the command does"
    assert re.search(r"^  (?:[A-Z_]+=\S+ )?bridgehead ", text, re.MULTILINE), "and shows how to type it"


def test_no_printed_command_begins_with_a_prompt_unless_its_output_follows() -> None:
    prompted = [
        f"{document.name}: {block}"
        for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
        for kind, block in FENCE.findall(document.read_text(encoding="utf-8"))
        if all(line.strip().startswith("$ ") for line in block.splitlines() if line.strip())
    ]

    assert prompted == []


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_at_a_terminal_hands_over_the_words_that_are_printed(shell: str, tmp_path: Path) -> None:
    lines = [line for _, line in commands() if line and not set(line) & EXPANDED]
    typed = {line: shlex.split(re.sub(r"^([A-Z_]+=\S+ )+", "", line)) for line in lines}
    typed = {line: words for line, words in typed.items() if re.fullmatch(PROGRAMS, words[0])}
    notes = tmp_path / "notes"
    for name in {words[0] for words in typed.values()}:
        program = tmp_path / name
        program.write_text(
            f"#!/bin/sh\nprintf '%s\\0' {name} \"$@\" >> {notes}\nprintf '\\n\\0' >> {notes}\n"
        )
        program.chmod(0o700)

    subprocess.run(
        [str(shutil.which(shell)), *OPTIONS[shell]],
        input="\n".join(typed) + "\n",
        env={"PATH": str(tmp_path), "HOME": str(tmp_path), "TERM": "dumb"},
        text=True,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
        start_new_session=True,
    )

    received = [words.split("\0")[:-1] for words in notes.read_text(encoding="utf-8").split("\n\0")[:-1]]
    assert received == list(typed.values())
    assert len(received) > 100


@pytest.mark.parametrize(
    ("platform", "line"),
    [
        ("linux", "AOC_YEAR=2024 AOC_DATA_DIR='my puzzles' bridgehead aoc check"),
        ("darwin", "AOC_YEAR=2024 AOC_DATA_DIR='my puzzles' bridgehead aoc check"),
        ("win32", "$env:AOC_YEAR = '2024'; $env:AOC_DATA_DIR = 'my puzzles'; bridgehead aoc check"),
    ],
)
def test_a_command_with_settings_is_printed_for_the_shell_of_the_system(platform: str, line: str) -> None:
    settings = {"AOC_YEAR": "2024", "AOC_DATA_DIR": "my puzzles"}

    assert with_settings(settings, "bridgehead aoc check", platform) == line
