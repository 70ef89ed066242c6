"""The Inspector and the bitburner bridge: owns the calls, the right answers, and the games that dial in.

The Inspector starts the bridge anew for each call, and a simulated game of each generation dials whatever
listens on its port, again and again, as the game does.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.interop.check import Check
from tests.interop.inspector import INSPECTOR, REVISIONS
from tests.interop.node import ROOT
from tests.interop.server_process import HOST
from tests.support.ports import free_port

Judge = Callable[[Any], None]

SCRIPT = "export async function main(ns) { await ns.hack('n00dles'); }\n"
FIRST = 2
"""The older generation of the game."""
TOOLS = json.loads((ROOT / "tests" / "bitburner" / "tools.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Call:
    """What the Inspector is told to do, what has to come of it, and with which exit status."""

    title: str
    arguments: tuple[str, ...]
    judge: Judge
    status: int = 0
    """5 is what the Inspector ends with after a tool error."""
    is_basic: bool = False


@contextmanager
def playing(home: Path) -> Iterator[dict[int, int]]:
    """Let a game of each generation play; gives the port that each dials."""
    files = home / "files"
    files.mkdir()
    (files / "hack.js").write_text(SCRIPT, encoding="utf-8")
    ports = {generation: free_port() for generation in (2, 3)}
    games = [_game(generation, port, files) for generation, port in ports.items()]
    try:
        yield ports
    finally:
        for game in games:
            game.terminate()
            game.wait(10)


def _game(generation: int, port: int, files: Path) -> subprocess.Popen[bytes]:
    options = ("--url", f"ws://{HOST}:{port}", "--generation", str(generation), "--files", str(files))
    return subprocess.Popen(
        [sys.executable, "-m", "bridgehead", "bitburner", "simulate", *options, "--reconnect", "0.1"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
    )


def checks(node: str, home: Path, ports: dict[int, int]) -> list[Check]:
    """Every call in the handshake era with a game of each generation, and the basic ones in the others."""
    INSPECTOR.install()
    program = (node, str(INSPECTOR.home / "clients" / "launcher" / "build" / "index.js"), "--cli")
    return [
        Check(
            name=f"inspector {INSPECTOR.version}, {era}, bitburner {generation}.x, {call.title}",
            command=(
                *program,
                *(sys.executable, "-m", "tests.interop.bitburner_server", str(port), str(home / "state")),
                *call.arguments,
                *("--protocol-era", era, "--format", "json"),
            ),
            judge=_of_result(call.judge),
            environment={"HOME": str(home)},
            status=call.status,
        )
        for era in REVISIONS
        for generation, port in ports.items()
        for call in _calls(generation)
        if era == "legacy" or call.is_basic
    ]


def _calls(generation: int) -> list[Call]:
    metadata = _fails("unsupported_by_game") if generation == FIRST else _lists_times
    return [
        Call("tools/list", ("--method", "tools/list", "--strict"), _lists_tools, is_basic=True),
        Call("list_files", _tool("list_files"), _says('["hack.js"]')),
        Call("read_file", _tool("read_file", filename="hack.js"), _says(SCRIPT), is_basic=True),
        Call(
            "write_file",
            _tool("write_file", filename="a.js", content=SCRIPT),
            _says("OK"),
        ),
        Call("delete_file", _tool("delete_file", filename="a.js"), _says("OK")),
        Call("calculate_ram", _tool("calculate_ram", filename="hack.js"), _says("1.7")),
        Call("a missing file", _tool("read_file", filename="no.js"), _fails("not_found"), 5, is_basic=True),
        Call("a bad name", _tool("read_file", filename="a b.js"), _fails("invalid_argument"), 5),
        Call("metadata", _tool("get_file_metadata"), metadata, 5 if generation == FIRST else 0),
        Call("resources/list", ("--method", "resources/list"), _lists_files),
        Call("prompts/list", ("--method", "prompts/list"), _lists_prompts),
    ]


def _tool(name: str, **arguments: str) -> tuple[str, ...]:
    return ("--method", "tools/call", "--tool-name", name, "--tool-args-json", json.dumps(arguments))


def _of_result(judge: Judge) -> Callable[[str], None]:
    return lambda output: judge(json.loads(output)["result"])


def _lists_tools(result: Any) -> None:
    assert [tool["name"] for tool in result["tools"]] == [tool["name"] for tool in TOOLS]


def _says(text: str) -> Judge:
    def judge(result: Any) -> None:
        assert not result.get("isError"), result
        assert result["content"][0]["text"] == text, f"the text is not {text!r}"
        assert result["structuredContent"], "there is no structured content"

    return judge


def _fails(code: str) -> Judge:
    def judge(result: Any) -> None:
        assert result["isError"], "it did not fail"
        assert result["structuredContent"]["code"] == code, f"the code is not {code}"
        assert result["structuredContent"]["next_step"] in result["content"][0]["text"]

    return judge


def _lists_times(result: Any) -> None:
    assert result["structuredContent"]["files"][0]["filename"] == "hack.js"


def _lists_files(result: Any) -> None:
    assert all(one["uri"].startswith("bitburner://home/") for one in result["resources"])


def _lists_prompts(result: Any) -> None:
    assert [one["name"] for one in result["prompts"]] == ["write_script", "slim_script"]
