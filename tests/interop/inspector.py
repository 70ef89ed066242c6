"""The official Inspector, from the command line: owns the methods it calls and the right answers."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.interop.check import Check
from tests.interop.node import Package

INSPECTOR = Package("@modelcontextprotocol/inspector", "2.12.0")
REVISIONS = {"legacy": "2025-11-25", "auto": "2026-07-28", "modern": "2026-07-28"}
STDIO = (sys.executable, "-m", "tests.interop.server")

Judge = Callable[[Any], None]


def checks(node: str, address: str, home: Path, token: str = "", *, about: str = "") -> list[Check]:
    """Every method in every era over both transports; what the Inspector stores goes to the given home."""
    INSPECTOR.install()
    program = (node, str(INSPECTOR.home / "clients" / "launcher" / "build" / "index.js"), "--cli")
    header = ("--header", f"Authorization: Bearer {token}") if token else ()
    targets = {"http": (f"{address}/mcp", *header)}
    if not about:
        targets["stdio"] = STDIO
    return [
        Check(
            name=f"{about}inspector {INSPECTOR.version}, {era}, {transport}, {title}",
            command=(*program, *target, *arguments, "--protocol-era", era, "--format", "json"),
            judge=of_result(judge),
            environment={"HOME": str(home)},
        )
        for era, revision in REVISIONS.items()
        for transport, target in targets.items()
        for title, arguments, judge in _calls(revision)
    ]


def _calls(revision: str) -> list[tuple[str, tuple[str, ...], Judge]]:
    five = ("--tool-name", "add", "--tool-args-json", '{"a": 2, "b": 3}')
    return [
        ("tools/list", ("--method", "tools/list", "--strict"), _lists_tools),
        ("tools/call add", ("--method", "tools/call", *five), _adds_up),
        ("tools/call revision", ("--method", "tools/call", "--tool-name", "revision"), _is_text(revision)),
        ("resources/list", ("--method", "resources/list"), _lists("resources", "uri", "interop://motto")),
        ("prompts/list", ("--method", "prompts/list"), _lists("prompts", "name", "plan_day")),
    ]


def of_result(judge: Judge) -> Callable[[str], None]:
    """Let a judge look at the result in what the Inspector prints."""
    return lambda output: judge(json.loads(output)["result"])


def _lists_tools(result: Any) -> None:
    names = sorted(tool["name"] for tool in result["tools"])
    assert names == ["add", "ask_name", "cancellations", "echo", "revision", "slow_count"], names


def _adds_up(result: Any) -> None:
    assert result["structuredContent"] == {"sum": 5}, "the structured content is not the sum"


def _is_text(expected: str) -> Judge:
    def judge(result: Any) -> None:
        assert [block["text"] for block in result["content"]] == [expected], f"the text is not {expected}"

    return judge


def _lists(what: str, key: str, expected: str) -> Judge:
    def judge(result: Any) -> None:
        assert [entry[key] for entry in result[what]] == [expected], f"{what} is not {expected} alone"

    return judge
