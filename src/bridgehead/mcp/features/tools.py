"""Tools: their declaration, listing and arguments. Their results are in `results`.

A tool is a typed function plus its declaration. Its input is a strict struct, made of the function's
parameters if it declares none. Schemas and decoders are made on first use, or when a declaration is checked.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from copy import copy
from functools import cached_property
from typing import Any, Literal, TypedDict

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from .. import jsonrpc
from ..calls.params import EMPTY, NULL
from ..errors import INVALID_PARAMS, DeclarationError, ProtocolError, ToolError, quote
from ..revisions import NEWEST_HANDSHAKE, Revision
from ..values.argument_errors import describe, reword
from ..values.content import Icon, Wire, fit
from ..values.custom import read_custom
from ..values.leniency import normalize
from ..values.schema import check_headers, flat_schema, input_schema, mirrored_headers
from .apps import Visibility
from .bridge_base import BridgeBase
from .docstrings import read_docstring
from .functions import (
    check_description,
    check_function,
    check_input,
    check_item,
    check_name,
    input_type,
    make_handler,
    name_of,
    run_in_thread,
    stop_after,
)
from .results import Body, ReturnType, encode_result

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
TaskSupport = Literal["optional", "required"]
GRACE_SECONDS = 0.3
"""How long a call may take before it becomes a task, unless the tool sets its own."""


class Arguments(Struct, forbid_unknown_fields=True):
    """Base of a tool's or prompt's input: strict, so an unknown property is refused."""


class NoArguments(Arguments):
    """Input of a tool that takes nothing."""


class ToolHints(Wire, frozen=True):
    """Annotations of a tool: what a client may tell its user before the call."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class ToolItem(Wire, frozen=True, kw_only=True):
    """A tool as it is listed."""

    name: str
    title: str | None = None
    description: str | None = None
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: ToolHints | None = None
    icons: tuple[Icon, ...] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


InputSchema = dict[str, Any] | Callable[[dict[str, Any]], dict[str, Any]]
"""The schema to list, or a function that makes it from the generated one."""


class Options(TypedDict, total=False):
    """The options of a tool as it keeps them."""

    name: str | None
    title: str | None
    icons: tuple[Icon, ...]
    paid: bool
    effect: str
    in_thread: bool
    scopes: Iterable[str]
    seconds: float | None
    task: TaskSupport | None
    task_grace_seconds: float
    visible_to: Visibility
    # For servers with a published contract:
    input_schema: InputSchema | None
    defaults: dict[str, Any] | None
    contract_schema: dict[str, Any] | None
    contract_description: str | None


class ToolOptions(Options, total=False):
    """The options of `bridge.tool`; its docstring says what they do."""

    read_only: bool | None
    destructive: bool | None
    idempotent: bool | None
    open_world: bool | None
    app: str | None
    meta: dict[str, Any] | None


class Tool:
    """One tool: its handler and its declaration."""

    def __init__(
        self,
        function: Callable[..., Any],
        description: str | None,
        *,
        bridge: BridgeBase,
        in_thread: bool = False,
        name: str | None = None,
        title: str | None = None,
        hints: ToolHints,
        paid: bool = False,
        effect: str = "",
        icons: tuple[Icon, ...] = (),
        input_schema: InputSchema | None = None,
        contract_schema: dict[str, Any] | None = None,
        contract_description: str | None = None,
        defaults: dict[str, Any] | None = None,
        meta: dict[str, Any] | None = None,
        visible_to: Visibility = "everyone",
        task: TaskSupport | None = None,
        task_grace_seconds: float = GRACE_SECONDS,
        scopes: Iterable[str] = (),
        seconds: float | None = None,
    ) -> None:
        self.function = function
        self.name = name or name_of(function)
        handler = make_handler(function)
        self.handler: Callable[[Any, Any], Any | Awaitable[Any]] = (
            run_in_thread(handler) if in_thread else handler
        )
        """Called with the decoded arguments and the context."""
        self.scopes = frozenset((scopes,) if isinstance(scopes, str) else scopes)
        """What a caller over HTTP needs to be allowed."""
        if seconds is not None:
            if not in_thread and not inspect.iscoroutinefunction(inspect.unwrap(function)):
                raise DeclarationError(
                    f"Tool {self.name} has seconds= but is a plain def, which nothing can stop. Declare it "
                    "as async def or with in_thread=True."
                )
            self.handler = stop_after(self.handler, seconds, self.name)
        self._is_reported = False
        self.task = task
        """Whether a call may become a task, or must."""
        self.task_grace_seconds = task_grace_seconds
        self.reword_returned: Callable[[Any], Any] | None = None
        """Fits what the handler returned to the tools that are offered (`wording`)."""
        self.bridge = bridge
        """The bridge that declared it; its state and dialect apply in combined bridges too."""
        self.returns = ReturnType(function, self.name)
        if description is None:
            description, _ = read_docstring(function)
        self.description = description
        self.title = title
        self.is_paid = paid
        """Whether a call costs money."""
        self.effect = effect
        """What a call does to the far side, in a few words for people; empty if the hints are enough."""
        self.visible_to: Visibility = visible_to
        self.is_read_only = hints.read_only_hint is True
        """Whether it is declared to change nothing."""
        self.is_destructive = hints.destructive_hint is True
        """Whether it is declared to destroy something."""
        self._hints = hints
        self._icons = icons
        self._input_schema = input_schema
        self._contract_schema = contract_schema
        self._contract_description = contract_description
        self._defaults = defaults or {}
        self._meta = meta

    def encode(self, returned: Any, revision: Revision) -> Body:
        """Encode what the handler returned, perhaps with notes that a hook added."""
        if self.reword_returned is not None:
            returned = self.reword_returned(returned)
        return encode_result(returned, revision, self.returns)

    def report_blocking(self, seconds: float) -> None:
        """Say once in the log that the function keeps other calls waiting."""
        if not self._is_reported:
            self._is_reported = True
            logging.getLogger("bridgehead.mcp").warning(
                "tool %s blocked every other call for %d ms: declare it with in_thread=True or as async def",
                self.name,
                seconds * 1000,
            )

    @property
    def is_contract(self) -> bool:
        """Whether it is one of the tools of the bridge's contract."""
        return self._contract_schema is not None

    def refuse(self, message: str) -> Tool:
        """Return a copy that is listed as usual but rejects every call with this message."""

        def refuse(_arguments: Any, _context: Any) -> str:
            raise ToolError(message)

        twin = copy(self)
        twin.handler, twin.task = refuse, None
        return twin

    def check(self) -> None:
        """Raise `DeclarationError` if no client could use this declaration."""
        check_name(self.name, "Tool")
        label = f"Tool {self.name}"
        check_function(self.function, label)
        check_description(self.description, label)
        check_input(self.input_type, label)
        self.returns.check()
        check_item(self.item(NEWEST_HANDSHAKE), label)
        check_headers(self.input_schema, label)
        if self.is_read_only and self.is_destructive:
            raise DeclarationError(f"{label} cannot be both read_only and destructive.")

    @cached_property
    def input_type(self) -> type[Struct]:
        """The struct of the arguments."""
        return input_type(self.function, f"Tool {self.name}", Arguments)

    @cached_property
    def decode(self) -> Callable[[Raw], Any]:
        """Decode the arguments of a call strictly; raises one of `jsonrpc.UNDECODABLE`."""
        return msgspec.json.Decoder(self.input_type, dec_hook=read_custom).decode

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the input, as listed."""
        declared = self._input_schema
        schema = declared if isinstance(declared, dict) else input_schema(self.input_type)
        if callable(declared):
            schema = declared(schema)
        for name, value in self._defaults.items():
            schema["properties"][name]["default"] = value
        return schema

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the structured output, in full, as documents show it."""
        return self.returns.schema

    @cached_property
    def listed_output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the structured output as listed: in full, or an outline."""
        if self.visible_to == "app":
            return None  # only the page calls it, and it knows the shape
        return self.returns.schema if self.bridge.output_schemas == "full" else self.returns.outline

    @cached_property
    def headers(self) -> dict[str, tuple[str, ...]]:
        """The HTTP headers that mirror parameters of this tool."""
        return mirrored_headers(self.input_schema)

    def item(self, revision: Revision) -> ToolItem:
        """Return the tool as it is listed for a revision."""
        schema, description = self.input_schema, self.description
        if self._contract_schema is not None and revision.name == self.bridge.contract_revision:
            schema, description = self._contract_schema, self._contract_description or description
        hints: ToolHints | None = None
        if revision.tool_annotations:
            # Before tools had a `title` of their own, it was one of the annotations.
            hints = self._hints if revision.titles else replace(self._hints, title=self.title)
        return fit(
            ToolItem(
                name=self.name,
                input_schema=schema,
                title=self.title,
                description=description,
                output_schema=self.listed_output_schema if revision.structured_output else None,
                annotations=None if hints == ToolHints() else hints,
                icons=self._icons or None,
                meta=self._meta,
            ),
            revision,
        )

    def decode_leniently(self, raw: Raw) -> Any:
        """Decode arguments that `decode` refused; raises `InvalidArguments`, which says what is wrong."""
        try:
            value = jsonrpc.decode_value(EMPTY if bytes(raw) == NULL else raw)
        except jsonrpc.UNDECODABLE as error:
            raise InvalidArguments(self.name, reword(str(error))) from error
        value = normalize(value, self._argument_schema, numeric_strings=self.bridge.numeric_strings)
        try:
            return msgspec.convert(value, self.input_type, dec_hook=read_custom)
        except msgspec.ValidationError as error:
            problem = describe(value, self._argument_schema, str(error))
            raise InvalidArguments(self.name, problem) from error

    @cached_property
    def _argument_schema(self) -> dict[str, Any]:
        """The schema of the struct itself; the listed one may be a contract's."""
        return flat_schema(self.input_type)


class InvalidArguments(Exception):
    """Arguments that do not fit; the text says where and what was expected. The dialect words the failure."""

    def __init__(self, tool: str, problem: str) -> None:
        super().__init__(problem)
        self.tool = tool


def unknown_tool(name: str, known: list[str], reason: str = "") -> ProtocolError:
    """Make the error for an unknown tool; it lists the tools that exist, and says what hides this one."""
    message = f"Unknown tool: {quote(name)}"
    error = ProtocolError(INVALID_PARAMS, f"{message}. {reason}" if reason else message, {"tools": known})
    error.refused_tool, error.hidden_by = name, reason
    return error
