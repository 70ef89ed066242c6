"""Results: the return value of a tool's function, and its wire form in each revision.

Text and content blocks are sent as they are. Any other value is structured content, which has to be an
object: other values are wrapped in `{"result": …}`. The same value is in the text as JSON, for clients that
read only text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import cached_property
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import msgspec
from msgspec import Struct, field

from .. import jsonrpc
from ..errors import DeclarationError, ToolError
from ..revisions import Revision
from ..values.content import Audio, Content, Embedded, Image, Link, Text, Wire, fit_block, json_text
from ..values.schema import output_outline, output_schema
from .annotations import explain, show_type
from .functions import read_hints

Output = TypeVar("Output")
Body = tuple[bytes, dict[str, Any] | None]
"""An encoded result object, and the `_meta` to put into it."""
EventualBody = Body | Coroutine[Any, Any, Body]
EMPTY_BODY: Body = (b"{}", None)


class Answer(Struct, Generic[Output], frozen=True):
    """A tool's answer with a text of its own, or with notes and next steps beside its value.

    Only the engine renders `notes` and `next`: as a text block of their own after the text, and as members of
    the structured content. So they reach the model whichever of the two its client shows.
    """

    text: str | None = None
    """None stands for the structured value in JSON."""
    structured: Output = cast("Output", None)
    """None if the text is the whole answer."""
    meta: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    """Facts that the reader must know, a sentence each."""
    next: tuple[str, ...] = ()
    """What to do now, a sentence each."""


class Encoded(Struct, frozen=True):
    """A result that is already JSON, for a handler that gives the same answer many times.

    It is sent as it is, so the handler must fit it to the client's revision.
    """

    result: bytes


class CallResult(Wire, frozen=True):
    """A tool's result on the wire."""

    content: list[Content]
    structured_content: Any = None
    is_error: bool = False
    meta: dict[str, Any] | None = field(default=None, name="_meta")


Form = Literal["content", "object", "wrapped", "any"]
"""How a declared type is returned: as text or content blocks, as structured content, as structured content in
`{"result": …}`, or as each value turns out to be."""
_BLOCKS = (Text, Image, Audio, Embedded, Link)
DONE = "Done."
"""The text of a result of None."""


class ReturnType:
    """The declared return type of a tool's function; evaluated on first use, which takes about 50 µs."""

    def __init__(self, function: Callable[..., Any], tool: str) -> None:
        self._function = function
        self._tool = tool

    @cached_property
    def _declared(self) -> tuple[Form, Any]:
        return _classify(read_hints(self._function, self._tool).get("return", Any))

    @cached_property  # every call of a tool with structured content asks for it
    def form(self) -> Form:
        """How it is returned."""
        return self._declared[0]

    @property
    def kind(self) -> Any:
        """The type of the structured content; None if it has no schema."""
        return self._declared[1]

    @cached_property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the structured content, in full."""
        if self.kind is None:
            return None
        schema = output_schema(self.kind)
        if self.form == "object":
            schema.pop("additionalProperties", None)  # notes are added beside the members
            return schema
        return {"type": "object", "properties": {"result": schema}, "required": ["result"]}

    @cached_property
    def outline(self) -> dict[str, Any] | None:
        """The JSON Schema of the structured content, without nested members."""
        if self.kind is None:
            return None
        outline = output_outline(self.kind)
        return outline if self.form == "object" else {"type": "object", "properties": {"result": outline}}

    def check(self) -> None:
        """Refuse a type that cannot be returned."""
        kind = read_hints(self._function, self._tool).get("return", Any)
        try:
            _ = self.form, self.schema
        except (TypeError, ValueError) as problem:
            raise DeclarationError(
                f"Tool {self._tool} returns {show_type(kind)}. {explain(problem)} "
                "For pictures and files, return Image, Audio or Embedded."
            ) from problem


def _classify(kind: Any) -> tuple[Form, Any]:
    """Return the form of a declared type, and the type of its structured content if that has a schema."""
    origin = get_origin(kind)
    if kind is Any or kind is object:
        return "any", None
    if origin is Annotated:
        return _classify(get_args(kind)[0]) if get_args(kind)[0] is str else _by_schema(kind)
    if origin is Answer:
        return _classify(get_args(kind)[0])
    if origin in {Awaitable, Coroutine}:
        return _classify(get_args(kind)[-1])
    if origin in {Union, UnionType}:
        # Such as `Answer[T] | Encoded | Awaitable[Answer[T]]`: ready or awaited, it is one type.
        direct = [
            option
            for option in get_args(kind)
            if option is not Encoded and get_origin(option) not in {Awaitable, Coroutine}
        ]
        forms = {_classify(option) for option in direct if option is not NoneType}
        if len(direct) == 1:
            return forms.pop()
        is_data = all(form in {"object", "wrapped"} for form, _ in forms)
        return ("wrapped", Union[tuple(direct)]) if is_data and forms else ("any", None)  # noqa: UP007
    if kind in {str, NoneType, None, Answer, Encoded, CallResult} or kind in _BLOCKS or kind is Content:
        return ("any" if kind is Answer else "content"), None
    if origin in {list, tuple}:
        options = [option for item in get_args(kind) for option in (get_args(item) or (item,))]
        if options and all(option in _BLOCKS or option is Ellipsis for option in options):
            return "content", None
    if isinstance(kind, type) and issubclass(kind, Struct) and not kind.__struct_config__.array_like:
        return "object", kind  # the usual case, without making a schema
    return _by_schema(kind)


def _by_schema(kind: Any) -> tuple[Form, Any]:
    if kind is bytes:
        message = "bytes cannot be shown to a model"
        raise TypeError(message)
    schema = output_schema(kind)
    if schema.get("type") == "string":
        return "content", None  # a literal, an enum of strings, a date: text
    return ("object" if schema.get("type") == "object" else "wrapped"), kind


def encode_result(value: Any, revision: Revision, returns: ReturnType | None = None) -> Body:
    """Encode a function's return value for a revision; return it with its `_meta`.

    Without a declared return type, the value alone decides.
    """
    if isinstance(value, str):
        return b'{"content":[{"type":"text","text":%b}]}' % jsonrpc.encode(value), None
    if isinstance(value, Encoded):
        return value.result, None
    if isinstance(value, Answer):
        text, data = value.text, value.structured
        content: list[Content] = [json_text(data) if text is None else Text(text)]
        structured = _structure(data, returns) if revision.structured_output and data is not None else None
        if value.notes or value.next:
            lines = [f"Note: {note}" for note in value.notes]
            lines += [f"Next: {step}" for step in value.next]
            content.append(Text("\n".join(lines)))
            if revision.structured_output:
                # A client that shows only structured content must see the text too, not just the notes.
                structured = {"result": text} if structured is None else msgspec.to_builtins(structured)
                if value.notes:
                    structured["notes"] = value.notes
                if value.next:
                    structured["next"] = value.next
        return jsonrpc.encode(CallResult(content, structured)), value.meta
    if isinstance(value, CallResult):
        blocks = [fit_block(block, revision) for block in value.content]
        structured = _structure(value.structured_content, None) if revision.structured_output else None
        return jsonrpc.encode(CallResult(blocks, structured, value.is_error)), value.meta
    parts = _content_of(value, returns)
    if parts is not None:
        return jsonrpc.encode(CallResult([fit_block(block, revision) for block in parts])), None
    structured = _structure(value, returns) if revision.structured_output else None
    return jsonrpc.encode(CallResult([json_text(value)], structured)), None


def _content_of(value: Any, returns: ReturnType | None) -> list[Content] | None:
    """Return the value as content blocks, or None if it is structured data."""
    if isinstance(value, _BLOCKS):
        return [value]
    if isinstance(value, list | tuple) and (value or (returns is not None and returns.form == "content")):
        return list(value) if all(isinstance(item, _BLOCKS) for item in value) else None
    if value is None and (returns is None or returns.form != "wrapped"):
        return [Text(DONE)]
    if returns is not None and returns.form == "content":  # such as an enum of strings or a date
        return [Text(str(msgspec.to_builtins(value)))]
    return None


def _structure(value: Any, returns: ReturnType | None) -> Any:
    """Return a value as structured content: an object."""
    if value is None or (returns is not None and returns.form == "wrapped"):
        return None if returns is None else {"result": value}
    if isinstance(value, Struct) and not value.__struct_config__.array_like:
        return value
    plain = msgspec.to_builtins(value, str_keys=True)
    return plain if isinstance(plain, dict) else {"result": plain}


def error_result(error: ToolError) -> CallResult:
    """Return a tool error as a result that the model reads."""
    return CallResult([Text(error.message)], error.structured, is_error=True)
