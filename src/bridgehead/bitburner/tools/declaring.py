"""Declaring: offers the tools, counts and logs their calls, and leaves out those that write if so set.

A call is logged with its tool, server, file and size, never with a content.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property, wraps
from time import monotonic
from typing import Annotated, Any, TypeVar

from msgspec import Meta

from bridgehead.mcp import Bridge, Context
from bridgehead.mcp.features.tools import Tool, ToolHints
from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.metrics import Counter

from ..session import Session

_log = logs.logger("bitburner.tools")

Function = TypeVar("Function", bound=Callable[..., Awaitable[Any]])


class FailureAwareTool(Tool):
    """A tool whose output schema fits its failures too.

    Clients hold whatever structured content they get to the schema, also that of an error; one that demanded
    the members of a success would make them throw the error away.
    """

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of a success, or of a `Problem`."""
        schema = super().output_schema
        if schema is None or not schema.get("required"):
            return schema
        either = [{"required": schema["required"]}, {"required": ["code", "message"]}]
        return {name: value for name, value in schema.items() if name != "required"} | {"anyOf": either}


class ToolDeclarer:
    """Where the tools of one bridge are declared."""

    def __init__(self, bridge: Bridge[Session], calls: Counter, errors: Counter, *, read_only: bool) -> None:
        self.bridge = bridge
        self._calls = calls
        self._errors = errors
        self._read_only = read_only

    def read_tool(self, title: str, description: str) -> Callable[[Function], Function]:
        """Declare a tool that changes nothing."""
        return self._declared(title, description, ToolHints(read_only_hint=True, open_world_hint=False))

    def write_tool(
        self, title: str, description: str, *, destructive: bool, idempotent: bool
    ) -> Callable[[Function], Function]:
        """Declare a tool that changes something; it is not offered where nothing may be changed."""
        if self._read_only:
            return lambda handler: handler
        hints = ToolHints(
            read_only_hint=False,
            destructive_hint=destructive,
            idempotent_hint=idempotent,
            open_world_hint=False,
        )
        return self._declared(title, description, hints)

    def _declared(self, title: str, description: str, hints: ToolHints) -> Callable[[Function], Function]:
        def declare(handler: Function) -> Function:
            tool = FailureAwareTool(
                self._watched(handler), description, home=self.bridge, title=title, hints=hints
            )
            self.bridge.add(self.bridge.tools, tool.name, tool)
            return handler

        return declare

    def _watched(self, handler: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        name: str = handler.__name__

        @wraps(handler)
        async def watched(args: Any, ctx: Context[Session]) -> Any:
            self._calls.add(name)
            began = monotonic()
            try:
                answer = await handler(args, ctx)
            except Exception as error:
                self._errors.add(name)
                if isinstance(error, BridgeError):  # the engine logs what is a bug
                    about = _about(name, args, ctx, began)
                    _log.warn("tool failed", code=error.code, problem=error.message, **about)
                raise
            if _log.tells("info"):
                _log.info("tool called", **_about(name, args, ctx, began))
            return answer

        return watched


def _about(tool: str, args: Any, ctx: Context[Session], began: float) -> dict[str, object]:
    about: dict[str, object] = {"tool": tool, "request": ctx.request_id}
    for field in ("server", "filename"):
        value = getattr(args, field, None)
        if value is not None:
            about[field] = value
    content = getattr(args, "content", None)
    if content is not None:
        about["characters"] = len(content)
    about["ms"] = round((monotonic() - began) * 1000, 1)
    return about


Server = Annotated[str, Meta(description="Server's host name, case-sensitive")]
Filename = Annotated[str, Meta(min_length=1, description="Path on the server, such as scripts/hack.js")]
Glob = Annotated[str, Meta(description="Only files whose path fits, such as lib/*.js")]
