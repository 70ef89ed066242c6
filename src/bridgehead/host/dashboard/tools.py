"""Tools: the pages on which a person calls a tool: list, form, confirmation and result.

A tool is called through the caller's own view of the bridge, as over MCP: tools that the token does not open
are absent, and limits, audit and metering are the same. A tool that changes something or costs money is
called only after a confirmation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from bridgehead.mcp import REVISIONS, Bridge, Dispatcher, ProtocolError, Tool
from bridgehead.mcp.in_memory import InMemoryClient

from ..auth.grants import Grant
from . import layout
from .forms import ARGUMENT, InvalidField, read_fields, write_field
from .html import NOTHING, Child, Html, join, link, prose, tag
from .layout import Page, badge, empty, form, hidden, latency, section

CALL_SECONDS = 60.0
"""How long a page waits for a tool."""
_MAX_TEXT = 100_000
_MAX_PARTS = 50
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
# A revision without sessions: each page is one request, and no handshake has to come before it.
_REVISION = next(revision for revision in REVISIONS.values() if revision.stateless)


class Choice(Struct, frozen=True):
    """A tool in the visitor's view of its bridge."""

    bridge: str
    title: str
    dispatcher: Dispatcher
    name: str
    """The tool's name there."""
    tool: Tool


class CallOutcome(Struct, frozen=True):
    """The result of a call, or the reason why there is none."""

    result: dict[str, Any]
    seconds: float
    problem: str = ""
    """Empty if there is a result."""


def list_tools(bridge: Bridge[Any]) -> dict[str, Tool]:
    """Return the tools for people and models by the names that clients call; those for apps are left out."""
    return {name: tool for name, tool in bridge.tools.items() if tool.visible_to == "everyone"}


def needs_confirmation(tool: Tool) -> bool:
    """Tell whether a tool may change something or costs money."""
    return tool.is_paid or not tool.is_read_only


async def call_tool(choice: Choice, arguments: Mapping[str, Any], grant: Grant) -> CallOutcome:
    """Call a tool as an MCP client with this grant would."""
    client = InMemoryClient(choice.dispatcher, _REVISION, {})
    client.connection.principal = grant.name  # audit and metering name the visitor
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout(CALL_SECONDS):
            result = await client.call(choice.name, dict(arguments))
    except ProtocolError as failure:
        return CallOutcome({}, loop.time() - began, str(failure))
    except TimeoutError:
        problem = (
            f"The tool did not answer within {CALL_SECONDS:g} s. Use an MCP client for calls that take long."
        )
        return CallOutcome({}, loop.time() - began, problem)
    finally:
        choice.dispatcher.disconnect(client.connection)
    return CallOutcome(result, loop.time() - began)


# --- the list ----------------------------------------------------------------------------------------------


def write_tools(bridges: Mapping[str, tuple[str, dict[str, Tool]]]) -> Page:
    """Write the list of tools; `bridges` has each bridge's title and tools by its name."""
    parts: list[Child] = [
        tag("h1", "Tools"),
        tag("p", "Try a tool as a client would call it.", class_="lead"),
    ]
    for name, (title, tools) in bridges.items():
        items = [
            tag(
                "li",
                tag("a", tag("code", offered), href=link(layout.TOOL, bridge=name, name=offered)),
                write_badges(tool),
                tag("p", prose(tool.description.partition(". ")[0].rstrip(".") + ".")),  # its first sentence
            )
            for offered, tool in tools.items()
        ]
        content = tag("ul", items, class_="tools") if items else empty("No tool is open to you here.")
        parts.append(section(title, content, name=f"tools-{name}"))
    if not bridges:
        parts.append(empty("No bridge serves right now."))
    return Page("Tools", join(parts), layout.TOOLS)


def write_badges(tool: Tool) -> Html:
    """Write the labels of a tool's effects, in its own words if it has some, and whether it costs money."""
    if tool.effect:
        effect = badge(tool.effect, "warm")
    elif tool.is_destructive:
        effect = badge("overwrites or deletes", "bad")
    else:
        effect = badge("reads", "good") if tool.is_read_only else badge("changes", "warm")
    # One element: in the grid of the list, a second badge would be stretched across a row of its own.
    return tag("span", effect, badge("costs money", "warm") if tool.is_paid else NOTHING, class_="badges")


# --- the form ----------------------------------------------------------------------------------------------


def write_tool(
    choice: Choice,
    proof: str,
    filled_in: Mapping[str, str],
    problem: InvalidField | None = None,
    answer: Html = NOTHING,
) -> Page:
    """Write the page of one tool: its form with the last input, and the answer of the last call."""
    tool = choice.tool
    fields = read_fields(tool.input_schema)
    controls = [
        write_field(
            field,
            filled_in.get(ARGUMENT + field.name, ""),
            str(problem.args[0]) if problem is not None and problem.field == field.name else "",
        )
        for field in fields
    ]
    button = "Continue" if needs_confirmation(tool) else "Call"
    call_form = form(
        layout.CALL,
        proof,
        hidden("bridge", choice.bridge),
        hidden("name", choice.name),
        controls or tag("p", "The tool takes no arguments.", class_="about"),
        tag("div", tag("button", button, class_="primary"), class_="actions"),
        class_="call",
    )
    body = join(
        [
            tag("p", tag("a", "Tools", href=layout.TOOLS), " / ", choice.title, class_="trail"),
            tag("h1", tag("code", choice.name), " ", write_badges(tool)),
            tag("p", prose(tool.description), class_="lead"),
            answer,
            section("Arguments", call_form, name="arguments"),
        ]
    )
    return Page(choice.name, body, layout.TOOLS, status=200 if problem is None else 400)


def ask_to_call(
    choice: Choice, arguments: Mapping[str, Any], filled_in: Mapping[str, str], proof: str
) -> Page:
    """Write the confirmation of a call, with the form's input in hidden fields."""
    tool = choice.tool
    why = []
    if tool.effect:
        why.append(f"It {tool.effect}.")
    elif not tool.is_read_only:
        effect = "overwrite or delete" if tool.is_destructive else "change"
        why.append(f"It may {effect} something.")
    if tool.is_paid:
        why.append("It costs money.")
    body = join(
        [
            tag("h1", "Call ", tag("code", choice.name), "?"),
            tag("p", " ".join(why), class_="lead"),
            tag("pre", _format(arguments)),
            form(
                layout.CALL,
                proof,
                hidden("bridge", choice.bridge),
                hidden("name", choice.name),
                hidden("confirmed", "yes"),
                [hidden(name, value) for name, value in filled_in.items() if name.startswith(ARGUMENT)],
                tag("button", "Yes, call it", class_="danger"),
                tag(
                    "a",
                    "Cancel",
                    href=link(layout.TOOL, bridge=choice.bridge, name=choice.name),
                    class_="button",
                ),
                class_="actions",
            ),
        ]
    )
    return Page(f"Call {choice.name}?", body, layout.TOOLS)


# --- the answer --------------------------------------------------------------------------------------------


def write_answer(called: CallOutcome) -> Html:
    """Write the section with the answer of a call."""
    result = called.result
    has_failed = bool(called.problem) or result.get("isError") is True
    note = tag(
        "span",
        [badge("failed", "bad") if has_failed else badge("answered", "good"), " ", latency(called.seconds)],
    )
    if called.problem:
        return section("Answer", tag("p", called.problem, class_="problem"), name="answer", note=note)
    contents = result.get("content")
    parts = [_write_part(part) for part in (contents if isinstance(contents, list) else [])[:_MAX_PARTS]]
    structured = result.get("structuredContent")
    if structured is not None:
        summary = tag("summary", "Structured content")
        # tabindex: a long <pre> scrolls, and the keyboard scrolls only a focused element.
        parts.append(tag("details", summary, tag("pre", _format(structured), tabindex="0")))
    return section("Answer", parts or empty("The answer is empty."), name="answer", note=note)


def _write_part(part: Any) -> Html:
    kind = part.get("type")
    if kind == "text":
        return tag("pre", _shorten(str(part.get("text", ""))), tabindex="0")
    if kind == "image" and part.get("mimeType") in _IMAGES:
        return tag(
            "img", src=f"data:{part['mimeType']};base64,{part.get('data', '')}", alt="The image of the answer"
        )
    return tag("pre", _format(part), tabindex="0")


def _format(value: Any) -> str:
    return _shorten(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + f"\n… ({len(text):,} characters in all)"
