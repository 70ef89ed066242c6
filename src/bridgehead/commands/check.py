"""Check: calls every part of a bridge and validates every message against the protocol's official schemas.

The bridge runs in this process behind an in-memory client of each revision. Tools are called with arguments
made from their schemas (`examples`): those that change nothing, unless `--all` and `--paid` say more.
`problems_of` is the rule: whatever it returns is a problem, and an empty list means that none was found.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from bridgehead.mcp import (
    REVISIONS,
    Bridge,
    DeclarationError,
    ProtocolError,
    Revision,
    Tool,
    in_memory,
    run_on_loop,
)
from bridgehead.runtime import bridge_files
from bridgehead.runtime.command_line import Parser, completed_by
from bridgehead.runtime.logs import LogSettings
from bridgehead.runtime.manifest import make_bridge

from . import examples
from .tools import encode_listings, estimate_tokens

_ABOUT = """\
Calls the tools, resources and prompts of a bridge, validates every message, and lists what is wrong.

  bridgehead check server.py
  bridgehead check aoc --json

Call tools that change something too:
  bridgehead check server.py --all

With pytest: pytest --bridgehead server.py
"""
_SHOWN = {
    "Claude Code": "structure",
    "Codex": "structure",
    "Gemini CLI": "text",
    "opencode": "text",
    "Continue": "text",
    "Qwen Code": "both",
}
"""What six agent CLIs show a model of a result (docs/clients.md)."""
_SECONDS = 30.0
"""Longest time for one call."""
_RESULTS = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
}
"""The definition of each method's result in the official schemas."""
_MISTAKES = ("Internal error (", "Invalid arguments for ", "returned a result that breaks its declared type")
"""Errors that no valid call may give. Others say something about the world, such as an unknown city."""


class Problem(Struct, frozen=True):
    """Something that is wrong, and where."""

    part: str
    text: str
    place: str = ""
    """The file and line of the function."""


class Report(Struct):
    """What a check found."""

    problems: list[Problem]
    not_called: dict[str, str]
    """Parts that were not called, with the reason."""
    called: list[str]
    listed_tokens: int
    """What the tools cost in every conversation (o200k, estimated)."""
    result_tokens: dict[str, int]
    """What the results cost in each client."""


def parser() -> Parser:
    """Return the parser of the command line."""
    command = Parser(prog="bridgehead check", description=_ABOUT)
    bridge = command.add_argument("bridge", metavar="BRIDGE", help="its name, file or module")
    completed_by(bridge, lambda *_: bridge_files.suggestions())
    command.add_argument("--all", action="store_true", help="call tools that change something too")
    about = "call tools that cost money too, within the budget that the bridge's settings give"
    command.add_argument("--paid", action="store_true", help=about)
    command.add_argument("--json", action="store_true", help="print the report as JSON")
    return command


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Check a bridge; return 1 if something is wrong."""
    options = parser().parse_args(arguments)
    settings = {"MCP_LOG_LEVEL": "error", **environment}
    LogSettings(settings).configure_logs()
    try:
        bridge = make_bridge(bridge_files.load(options.bridge), settings)
    except DeclarationError as error:
        report = Report([Problem("declaration", str(error))], {}, [], 0, {})
    else:
        report = run_on_loop(examine(bridge, changing=options.all, paid=options.paid))
    if options.json:
        sys.stdout.write(json.dumps(msgspec.to_builtins(report), ensure_ascii=False, indent=2) + "\n")
    else:
        _show(report)
    return int(bool(report.problems))


async def examine(bridge: Bridge[Any], *, changing: bool = False, paid: bool = False) -> Report:
    """Check a bridge in every revision, and call its parts in the newest one."""
    report = Report([], {}, [], 0, {})
    seen: set[tuple[str, str]] = set()

    def add(part: str, text: str, function: Any = None) -> None:
        if (part, text) not in seen:
            seen.add((part, text))
            report.problems.append(Problem(part, text, _place_of(function)))

    *older, newest = REVISIONS.values()
    for revision in older:
        async with in_memory.connect(bridge, revision=revision) as client:
            await _list(_Judge(client, revision, add))
    report.listed_tokens = sum(
        estimate_tokens(len(listing)) for listing in encode_listings(bridge.tools).values()
    )
    async with in_memory.connect(bridge, revision=newest) as client:
        judge = _Judge(client, newest, add)
        await _list(judge)
        for name, tool in bridge.tools.items():
            await _examine_tool(judge, report, name, tool, changing=changing, paid=paid)
        for uri, resource in bridge.resources.items():
            report.called.append(uri)
            await judge.ask("resources/read", {"uri": uri}, uri, resource.function)
        for name, prompt in bridge.prompts.items():
            schema = prompt.argument_schema["properties"]
            given = {one: str(examples.make(inner)) for one, inner in schema.items()}
            report.called.append(name)
            await judge.ask("prompts/get", {"name": name, "arguments": given}, name, prompt.function)
    return report


async def _list(judge: _Judge) -> None:
    bridge = judge.client.dispatcher.bridge
    if judge.revision.stateless:
        await judge.ask("server/discover", {}, "server")
    else:
        judge.validate("initialize", judge.client.sent[0]["result"], "server")
    if bridge.tools:
        await judge.ask("tools/list", {}, "tools")
    if bridge.has_resources:
        await judge.ask("resources/list", {}, "resources")
        await judge.ask("resources/templates/list", {}, "resources")
    if bridge.prompts:
        await judge.ask("prompts/list", {}, "prompts")


async def _examine_tool(
    judge: _Judge, report: Report, name: str, tool: Tool, *, changing: bool, paid: bool
) -> None:
    if tool.is_paid and not paid:
        report.not_called[name] = "costs money (--paid)"
    elif not tool.is_read_only and not changing:
        report.not_called[name] = "may change something (--all)"
    else:
        for arguments in examples.several(tool.input_schema):
            report.called.append(name)
            params = {"name": name, "arguments": arguments}
            result = await judge.ask("tools/call", params, name, tool.function)
            if result is not None:
                judge.examine_result(name, tool, result, arguments)
                _count(report, result)
        if name not in report.called:
            report.not_called[name] = "no arguments could be made from its schema"


class _Judge:
    """A client that validates what it gets."""

    def __init__(self, client: in_memory.InMemoryClient, revision: Revision, add: Any) -> None:
        self.client = client
        self.revision = revision
        self._add = add

    async def ask(self, method: str, params: dict[str, Any], part: str, function: Any = None) -> Any:
        """Send a request; return its result, or None if it failed."""
        try:
            async with asyncio.timeout(_SECONDS):
                result = await self.client.request(method, params)
        except TimeoutError:
            self._add(part, f"{method} took longer than {_SECONDS:.0f} s", function)
            return None
        except ProtocolError as error:
            if any(words in error.message for words in _MISTAKES):
                self._add(part, error.message, function)
            return None
        self.validate(method, result, part, function)
        return result

    def validate(self, method: str, result: Any, part: str, function: Any = None) -> None:
        """Compare a result with the official schema of the revision."""
        kind = "InputRequiredResult" if result.get("resultType") == "input_required" else _RESULTS[method]
        for error in _validator(self.revision.name, kind).iter_errors(result):
            path = ".".join(map(str, error.instance_path))
            self._add(part, f"{method} in {self.revision}: {path}: {error.message}"[:500], function)

    def examine_result(self, name: str, tool: Tool, result: Any, arguments: Any) -> None:
        """Compare a tool's result with what it declares."""
        text = " ".join(block.get("text", "") for block in result.get("content", ()))
        if result.get("isError"):
            if any(words in text for words in _MISTAKES):
                self._add(name, f"{text} Its arguments were {json.dumps(arguments)}.", tool.function)
        elif tool.output_schema is not None and result.get("resultType") != "input_required":
            validator = jsonschema_rs.validator_for(tool.output_schema)
            for error in validator.iter_errors(result.get("structuredContent")):
                self._add(name, f"its result breaks its output schema: {error.message}", tool.function)


@cache
def _validator(revision: str, kind: str) -> Any:
    definitions = _schemas()[revision]
    return jsonschema_rs.validator_for({"$ref": f"#/$defs/{kind}", "$defs": definitions})


@cache
def _schemas() -> dict[str, Any]:
    """The schemas of all revisions: the official ones without descriptions, the parts that servers send."""
    loaded: dict[str, Any] = json.loads(Path(__file__).with_name("protocol_schemas.json").read_bytes())
    return loaded


def _count(report: Report, result: Any) -> None:
    text = sum(len(block.get("text", "").encode()) for block in result.get("content", ()))
    structure = len(msgspec.json.encode(result["structuredContent"])) if "structuredContent" in result else 0
    sizes = {"text": text, "structure": structure or text, "both": text + structure}
    for client, shown in _SHOWN.items():
        report.result_tokens[client] = report.result_tokens.get(client, 0) + estimate_tokens(sizes[shown])


def _place_of(function: Any) -> str:
    try:
        written = inspect.unwrap(function)
        return f"{inspect.getsourcefile(written)}:{inspect.getsourcelines(written)[1]}"
    except (TypeError, OSError):
        return ""


def _show(report: Report) -> None:
    console = Console(highlight=False)
    for problem in report.problems:
        console.print(f"[red]{problem.part}[/]: ", end="")
        console.print(problem.text, markup=False)
        if problem.place:
            console.print(f"  [dim]{problem.place}[/]")
    for name, reason in report.not_called.items():
        console.print(f"[dim]not called: {name}, which {reason}[/]")
    console.print(
        f"{len(report.called)} calls, lists in {len(REVISIONS)} revisions. "
        f"The tools cost about {report.listed_tokens:,} tokens in every conversation."
    )
    if report.result_tokens:
        table = Table.grid(padding=(0, 2, 0, 0))
        for client, tokens in report.result_tokens.items():
            shown = _SHOWN[client].replace("both", "text and the structure")
            table.add_row(client, f"shows a model the {shown}:", f"~{tokens:,} tokens for these results")
        console.print(table)
    console.print("[red]Problems found.[/]" if report.problems else "[green]No problems found.[/]")


def failures(targets: list[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Check several bridges, and yield a line for each problem."""
    for target in targets:
        report = run_on_loop(examine(make_bridge(bridge_files.load(target), environment)))
        for problem in report.problems:
            yield f"{target}: {problem.part}: {problem.text} {problem.place}".rstrip()
