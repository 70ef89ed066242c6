"""Declaring: register the tools, count and log their calls.

A call is logged with its tool, server, file and size, never with a content. Also here: arguments that several
tools share, with their descriptions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

from msgspec import Meta
from msgspec.structs import replace

from bridgehead.mcp import (
    Answer,
    Bridge,
    Invocation,
    Outcome,
    observe_calls,
)
from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.metrics import Metrics

from ..session import Session

log = logs.logger("bitburner.tools")

PAGE_TOOLS = frozenset({"files_overview", "files_on_server", "files_ram"})
"""Tools that only a page calls. An agent does not see their answers, so they get no notes."""
GRACE_SECONDS = 2.0
"""A longer call becomes a task, if the client supports tasks."""

Function = TypeVar("Function", bound=Callable[..., Awaitable[Any]])

Server = Annotated[str, Meta(description="Host name; default home")]
Filename = Annotated[str, Meta(min_length=1, description="Path on the server, such as scripts/hack.js")]
MAX_QUERY = 1000
"""Limit of a pattern or query in characters: compiling a pattern of a megabyte takes seconds."""
Glob = Annotated[str, Meta(max_length=MAX_QUERY, description="Only files whose path fits, such as lib/*.js")]


class ToolDeclarer:
    """Registers the tools of one bridge."""

    def __init__(self, bridge: Bridge[Session], *, keeps_versions: bool) -> None:
        self.bridge = bridge
        self._keeps_versions = keeps_versions

    def read_tool(
        self,
        title: str,
        description: str,
        *,
        may_take_long: bool = False,
        meta: dict[str, Any] | None = None,
    ) -> Callable[[Function], Function]:
        """Declare a tool that changes nothing."""
        return self.bridge.tool(
            description,
            title=title,
            read_only=True,
            open_world=False,
            meta=meta,
            task="optional" if may_take_long else None,
            task_grace_seconds=GRACE_SECONDS,
        )

    def write_tool(
        self,
        title: str,
        description: str,
        *,
        destructive: bool,
        idempotent: bool,
        effect: str = "",
        may_take_long: bool = False,
    ) -> Callable[[Function], Function]:
        """Declare a tool that changes something; `effect` is a verb for what restore_file can undo."""
        is_undoable = bool(effect) and self._keeps_versions
        return self.bridge.tool(
            description,
            title=title,
            read_only=False,
            destructive=destructive,
            effect=f"{effect} (can be undone)" if is_undoable else effect,
            idempotent=idempotent,
            open_world=False,
            task="optional" if may_take_long else None,
            task_grace_seconds=GRACE_SECONDS,
        )


class CallObserver:
    """Counts and logs every call of a tool; the counters of all tools start at zero."""

    def __init__(self, bridge: Bridge[Session], metrics: Metrics) -> None:
        self._calls = metrics.counter("tool_calls_total", "Calls of a tool.", "tool")
        self._errors = metrics.counter("tool_errors_total", "Calls of a tool that failed.", "tool")
        for name in bridge.tools:
            self._calls.add(name, by=0)
            self._errors.add(name, by=0)

        def begin(call: Invocation) -> None:
            if call.kind == "tool":
                self._calls.add(call.name)

        bridge.around_calls(observe_calls(self._end, waits=begin, extend=_add_notices))

    def _end(self, call: Invocation, outcome: Outcome, seconds: float) -> None:
        if call.kind != "tool":
            return
        # Calls that wait are counted when they begin (`begin` above).
        if not outcome.waited:  # invalid arguments: the call never began
            self._calls.add(call.name)
        if outcome.status == "error":
            self._errors.add(call.name)
            error = outcome.error
            if isinstance(error, BridgeError):  # the engine logs bugs
                log.warn("tool failed", code=error.code, problem=error.message, **_describe(call, seconds))
        elif outcome.status == "ok" and log.is_enabled("info"):
            log.info("tool called", **_describe(call, seconds))


def _describe(call: Invocation, seconds: float) -> dict[str, object]:
    about: dict[str, object] = {"tool": call.name, "request": call.context.request_id}
    for field in ("server", "filename"):
        value = getattr(call.arguments, field, None)
        if value is not None:
            about[field] = value
    content = getattr(call.arguments, "content", None)
    if content is not None:
        about["characters"] = len(content)
    about["ms"] = round(seconds * 1000, 1)
    return about


def _add_notices(call: Invocation, answer: Any) -> Any:
    """Append pending notices, such as changed files, to the agent's next answer."""
    if call.kind != "tool" or call.name in PAGE_TOOLS or not isinstance(answer, Answer):
        return answer
    session: Session = call.context.state
    notices = session.take_notices(session.name_agent(call.context))
    return replace(answer, notes=(*answer.notes, *notices)) if notices else answer
