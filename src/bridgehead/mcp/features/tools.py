"""Tools: their declaration and listing, how arguments are decoded and results encoded.

A tool is a typed function plus its declaration. Its input is a strict struct, its output text, content blocks
or a struct with a schema. Schemas and decoders are made on first use, never at start.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import cached_property
from types import UnionType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from .. import jsonrpc
from ..calls.params import EMPTY, NULL
from ..errors import INVALID_PARAMS, ProtocolError, ToolError, quote
from .apps import Visibility
from .content import Content, Icon, Text, Wire, fit, fit_block, json_text
from .handlers import input_type, is_async
from .schema import flat_schema, input_schema, mirrored_headers, output_outline, output_schema

if TYPE_CHECKING:
    from ..revisions import Revision
    from .bridge_base import BridgeBase

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
TaskSupport = Literal["optional", "required"]
GRACE_SECONDS = 0.3
"""How long a call may take before it becomes a task, unless the tool sets its own."""


class Arguments(Struct, forbid_unknown_fields=True):
    """Base of a tool's or prompt's input: strict, so an unknown property is refused."""


class NoArguments(Arguments):
    """Input of a tool that takes nothing."""


Output = TypeVar("Output", bound=Struct)


class Answer(Struct, Generic[Output], frozen=True):
    """A tool's answer whose text is not just the structured value in JSON."""

    text: str
    structured: Output
    meta: dict[str, Any] | None = None


class Encoded(Struct, frozen=True):
    """A result that is already JSON, for a handler that gives the same answer many times.

    It is sent as it is, so the handler must fit it to the client's revision.
    """

    result: bytes


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


class CallResult(Wire, frozen=True):
    """A tool's result on the wire."""

    content: list[Content]
    structured_content: Any = None
    is_error: bool = False
    meta: dict[str, Any] | None = field(default=None, name="_meta")


Returned = str | Struct | list[Content]
Handler = Callable[[Any, Any], Returned | Awaitable[Returned]]
Recall = Callable[[Any], Encoded | None]
"""Returns the known answer to an earlier call with the same `ctx.arguments`, or None."""


class Tool:
    """One tool: its handler and its declaration."""

    def __init__(
        self,
        handler: Handler,
        description: str,
        *,
        bridge: BridgeBase,
        name: str | None = None,
        title: str | None = None,
        hints: ToolHints,
        paid: bool = False,
        icons: tuple[Icon, ...] = (),
        input_schema: dict[str, Any] | None = None,
        contract_schema: dict[str, Any] | None = None,
        defaults: dict[str, Any] | None = None,
        meta: dict[str, Any] | None = None,
        recall: Recall | None = None,
        visible_to: Visibility = "everyone",
        task: TaskSupport | None = None,
        task_grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self.handler = handler
        self.task = task
        """Whether a call may become a task, or must."""
        self.task_grace_seconds = task_grace_seconds
        self.recall = recall
        self.bridge = bridge
        """The bridge that declared it; its state and dialect apply in combined bridges too."""
        self.name = name or handler.__name__
        self.description = description
        self.title = title
        self.is_async = is_async(handler)
        self.is_paid = paid
        """Whether a call costs money."""
        self.visible_to: Visibility = visible_to
        self._hints = hints
        self._icons = icons
        self._input_schema = input_schema
        self._contract_schema = contract_schema
        self._defaults = defaults or {}
        self._meta = meta

    @property
    def is_read_only(self) -> bool:
        """Whether it is declared to change nothing."""
        return self._hints.read_only_hint is True

    @property
    def is_destructive(self) -> bool:
        """Whether it is declared to destroy something."""
        return self._hints.destructive_hint is True

    def refuse(self, message: str) -> Tool:
        """Return a copy that is listed in the same way and refuses every call with this message."""
        from copy import copy  # late: not needed for the first answer

        def refuse(_arguments: Any, _context: Any) -> str:
            raise ToolError(message)

        twin = copy(self)
        for derived in ("input_type", "decode", "input_schema", "output_type"):
            # Cached here, or they would be derived from the signature of the new handler.
            setattr(twin, derived, getattr(self, derived))
        twin.handler, twin.recall, twin.is_async, twin.task = refuse, None, False, None
        return twin

    @cached_property
    def input_type(self) -> type[Struct]:
        """The struct of the handler's first parameter."""
        kind = input_type(self.handler)
        if not kind.__struct_config__.forbid_unknown_fields:
            message = (
                f"The input of tool {self.name} must be an Arguments struct, which refuses what is unknown"
            )
            raise TypeError(message)
        return kind

    @cached_property
    def decode(self) -> Callable[[Raw], Any]:
        """Decode the arguments of a call."""
        return msgspec.json.Decoder(self.input_type).decode

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the input, as listed."""
        schema = self._input_schema or input_schema(self.input_type)
        for name, value in self._defaults.items():
            schema["properties"][name]["default"] = value
        return schema

    @cached_property
    def output_type(self) -> type[Struct] | None:
        """The struct of the structured output; None if the tool answers with content alone."""
        kind = get_type_hints(self.handler).get("return")
        if get_origin(kind) in {Union, UnionType}:  # such as `Answer[T] | Encoded | Awaitable[Answer[T]]`
            direct = [
                option
                for option in get_args(kind)
                if option is not Encoded and get_origin(option) not in {Awaitable, Coroutine}
            ]
            kind = direct[0] if len(direct) == 1 else None
        if get_origin(kind) is Answer:
            (kind,) = get_args(kind)
        if not (isinstance(kind, type) and issubclass(kind, Struct)) or issubclass(kind, Wire):
            return None
        return kind

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the structured output, in full, as documents show it."""
        return None if self.output_type is None else output_schema(self.output_type)

    @cached_property
    def listed_output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the structured output as listed: in full, or an outline."""
        if self.visible_to == "app":
            return None  # only the page calls it, and it knows the shape
        if self.output_type is None or self.bridge.output_schemas == "full":
            return self.output_schema
        return output_outline(self.output_type)

    @cached_property
    def headers(self) -> dict[str, tuple[str, ...]]:
        """The HTTP headers that mirror parameters of this tool."""
        return mirrored_headers(self.input_schema)

    def item(self, revision: Revision) -> ToolItem:
        """Return the tool as it is listed for a revision."""
        schema = self.input_schema
        if self._contract_schema is not None and revision.name == self.bridge.contract_revision:
            schema = self._contract_schema
        hints: ToolHints | None = None
        if revision.tool_annotations:
            # Before tools had a `title` of their own, it was one of the annotations.
            hints = self._hints if revision.titles else replace(self._hints, title=self.title)
        return fit(
            ToolItem(
                name=self.name,
                input_schema=schema,
                title=self.title,
                description=self.description,
                output_schema=self.listed_output_schema if revision.structured_output else None,
                annotations=None if hints == ToolHints() else hints,
                icons=self._icons or None,
                meta=self._meta,
            ),
            revision,
        )

    def arguments(self, raw: Raw) -> Any:
        """Decode a call's arguments; raises `InvalidArguments`, which says what is wrong with them."""
        try:
            return self.decode(raw)
        except jsonrpc.UNDECODABLE as refusal:
            # Slow path: decode once more, leniently, or find the words for the refusal.
            from .argument_errors import describe, reword  # late: only a refused call needs them
            from .leniency import normalize

            try:
                value = jsonrpc.decode_value(EMPTY if bytes(raw) == NULL else raw)
            except jsonrpc.UNDECODABLE as error:
                raise InvalidArguments(self.name, reword(str(error))) from refusal
            value = normalize(value, self._argument_schema)
            try:
                return msgspec.convert(value, self.input_type)
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


def unknown_tool(name: str, known: list[str]) -> ProtocolError:
    """Make the refusal of an unknown tool; it lists the tools that exist."""
    return ProtocolError(INVALID_PARAMS, f"Unknown tool: {quote(name)}", {"tools": known})


def encode_result(value: Returned | CallResult, revision: Revision) -> tuple[bytes, dict[str, Any] | None]:
    """Encode a handler's return value for a revision; its `_meta` is returned beside it."""
    if isinstance(value, str):
        return b'{"content":[{"type":"text","text":%b}]}' % jsonrpc.encode(value), None
    if isinstance(value, Encoded):
        return value.result, None
    if isinstance(value, Answer):
        structured = value.structured if revision.structured_output else None
        return jsonrpc.encode(CallResult([Text(value.text)], structured)), value.meta
    if isinstance(value, CallResult):
        result = value
    else:
        result = CallResult(value) if isinstance(value, list) else CallResult([json_text(value)], value)
    content = [fit_block(block, revision) for block in result.content]
    structured = result.structured_content if revision.structured_output else None
    return jsonrpc.encode(CallResult(content, structured, result.is_error)), result.meta


def error_result(error: ToolError) -> CallResult:
    """Return a tool error as a result that the model reads."""
    return CallResult([Text(error.message)], error.structured, is_error=True)
