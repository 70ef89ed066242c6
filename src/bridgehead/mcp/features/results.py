"""Results: the return value of a tool's function, and its wire form in each revision.

Text and content blocks are sent as they are. Any other value is structured content, which has to be an
object: other values are wrapped in `{"result": …}`. The same value is in the text as JSON, for clients that
read only text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
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
from msgspec import Raw, Struct, field

from .. import jsonrpc
from ..errors import DeclarationError, ToolError
from ..revisions import Revision
from ..values.argument_errors import describe
from ..values.content import Audio, Content, Embedded, Image, Link, Text, Wire, fit_block
from ..values.custom import CustomType, encode, read_custom
from ..values.leniency import normalize
from ..values.schema import output_outline, output_schema
from .annotations import explain, show_type, understand
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

    def __post_init__(self) -> None:
        """Take a text for one note or step."""
        for name in ("notes", "next"):
            if isinstance(text := getattr(self, name), str):
                msgspec.structs.force_setattr(self, name, (text,))


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
_UNDECLARED = (Any, object, Answer, Encoded, CallResult, list, tuple)
"""Types that say nothing about what is in a result; a list may be one of data or of blocks."""
DONE = "Done."
"""The text of a result of None."""


class InvalidResult(Exception):
    """A result that breaks the type that its tool declares; the text says where, and what was expected."""

    def __init__(self, tool: str, problem: str) -> None:
        super().__init__(f"{tool} returned a result that breaks its declared type: {problem}")


class _Declared(Struct, frozen=True):
    """What a declared type allows."""

    form: Form
    kind: Any = None
    """The type of the structured content; None if it has no schema."""
    blocks: frozenset[type] = frozenset()
    """Classes that are sent as content: text, None, blocks."""
    items: frozenset[type] = frozenset()
    """Classes of blocks and texts in a list that is sent as content."""
    data: tuple[Any, ...] = ()
    """Types that are written as JSON."""


class ReturnType:
    """The declared return type of a tool's function; evaluated on first use, which takes about 50 µs."""

    def __init__(self, function: Callable[..., Any], tool: str) -> None:
        self._function = function
        self._tool = tool

    @cached_property  # every call asks for it
    def declared(self) -> _Declared:
        """What it allows."""
        return _classify(read_hints(self._function, f"Tool {self._tool}").get("return", Any))

    @cached_property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the structured content, in full."""
        if self.declared.kind is None:
            return None
        schema = output_schema(self.declared.kind)
        if self.declared.form == "object":
            schema.pop("additionalProperties", None)  # notes are added beside the members
            return schema
        return {"type": "object", "properties": {"result": schema}, "required": ["result"]}

    @cached_property
    def outline(self) -> dict[str, Any] | None:
        """The JSON Schema of the structured content, without nested members."""
        if self.declared.kind is None:
            return None
        outline = output_outline(self.declared.kind)
        if self.declared.form == "object":
            return outline
        return {"type": "object", "properties": {"result": outline}}

    def check(self) -> None:
        """Refuse a type that cannot be returned."""
        kind = read_hints(self._function, f"Tool {self._tool}").get("return", Any)
        try:
            _ = self.schema
        except (TypeError, ValueError, RecursionError) as problem:
            raise DeclarationError(
                f"Tool {self._tool} returns {show_type(kind)}. {explain(problem)} "
                "For pictures and files, return Image, Audio or Embedded."
            ) from problem

    # --- values --------------------------------------------------------------------------------------------

    def blocks(self, value: Any) -> list[Content] | None:
        """Return a value as content blocks; None if it is data."""
        declared = self.declared
        if isinstance(value, str | NoneType | Text | Image | Audio | Embedded | Link):
            if Any in declared.data or isinstance(value, tuple(declared.blocks)):
                return [_block(value)]
            return None
        is_content = isinstance(value, list | tuple) and (
            any(isinstance(item, _BLOCKS) for item in value)
            or (declared.form == "content" and bool(declared.items))
        )
        if not is_content:
            return None
        if Any not in declared.data:
            for place, item in enumerate(value):
                if not isinstance(item, tuple(declared.items)):
                    raise self._invalid(f"item {place} must not be of the type {type(item).__name__}")
        return [_block(item) for item in value]

    def encode(self, value: Any) -> bytes:
        """Encode data as JSON, and check what was written: it is what clients validate."""
        kinds = self.declared.data
        if not kinds:
            expected = show_type(read_hints(self._function, f"Tool {self._tool}")["return"])
            raise self._invalid(f"expected {expected}, got {type(value).__name__}")
        try:
            written = encode(self._write(value))
        except (TypeError, OverflowError) as problem:
            raise self._invalid(str(problem)) from problem
        if Any in kinds:
            return written
        try:
            self._decode(written)
        except msgspec.ValidationError as problem:
            schema = output_schema(self._kind)
            plain = normalize(msgspec.json.decode(written), schema)  # JSON Schema counts 3.0 as an integer
            try:
                msgspec.convert(plain, self._kind, dec_hook=read_custom)
            except msgspec.ValidationError:
                raise self._invalid(describe(plain, schema, str(problem), "the result")) from problem
        return written

    @cached_property
    def _kind(self) -> Any:
        return Union[self.declared.data]  # noqa: UP007 - of any number

    @cached_property
    def _decode(self) -> Callable[[bytes], Any]:
        return msgspec.json.Decoder(self._kind, dec_hook=read_custom).decode

    @cached_property
    def _write(self) -> Callable[[Any], Any]:
        """Pydantic's way to write, for a type of pydantic's."""
        kind = self._kind
        kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
        is_custom = isinstance(kind, type) and issubclass(kind, CustomType)
        return kind.write if is_custom else lambda value: value

    def _invalid(self, problem: str) -> InvalidResult:
        return InvalidResult(self._tool, problem)


UNDECLARED = ReturnType(lambda: None, "")


def _block(value: Any) -> Content:
    """Return a part of a mixed result as a block: text for a string, JSON for data."""
    if isinstance(value, _BLOCKS):
        return value
    if value is None:
        return Text(DONE)
    return Text(value) if isinstance(value, str) else Text(encode(value).decode())


def _classify(kind: Any) -> _Declared:
    """Decide what a declared type allows, and how it is sent."""
    origin = get_origin(kind)
    if kind in _UNDECLARED:
        return _Declared("any", data=(Any,))
    if origin is Answer:
        return _classify(get_args(kind)[0])
    if origin in {Awaitable, Coroutine}:
        return _classify(get_args(kind)[-1])
    if origin in {Union, UnionType}:
        return _classify_union(kind)
    if kind in {str, NoneType, None} or kind in _BLOCKS:
        return _Declared("content", blocks=frozenset([NoneType if kind is None else kind]))
    if origin in {list, tuple}:
        items = [one for item in get_args(kind) for one in (get_args(item) or (item,)) if one is not Ellipsis]
        if any(item in _BLOCKS for item in items):
            return _Declared("content", items=frozenset(item for item in items if isinstance(item, type)))
    if isinstance(kind, type) and issubclass(kind, Struct) and not kind.__struct_config__.array_like:
        return _Declared("object", kind, data=(kind,))  # the usual case, without making a schema
    return _by_schema(kind)


def _classify_union(kind: Any) -> _Declared:
    # Such as `Answer[T] | Encoded | Awaitable[Answer[T]]`: ready or awaited, it is one type.
    direct = [
        option
        for option in get_args(kind)
        if option is not Encoded and get_origin(option) not in {Awaitable, Coroutine}
    ]
    options = {option: _classify(option) for option in direct if option is not NoneType}
    if len(direct) == 1:
        return options.popitem()[1]
    if options and all(option.form in {"object", "wrapped"} for option in options.values()):
        whole = understand(Union[tuple(direct)], "result")  # noqa: UP007 - of any number
        return _Declared("wrapped", whole, data=(whole,))
    data = tuple(one for option in options.values() for one in option.data)
    return _Declared(
        "any" if data else "content",
        blocks=frozenset().union(*(option.blocks for option in options.values()), {NoneType} & {*direct}),
        items=frozenset().union(*(option.items for option in options.values())),
        data=data,
    )


def _by_schema(kind: Any) -> _Declared:
    if kind is bytes:
        message = "bytes cannot be shown to a model"
        raise TypeError(message)
    understood = understand(kind, "result")
    schema = output_schema(understood)
    if schema.get("type") == "string":
        return _Declared("content", data=(understood,))  # a literal, an enum of strings, a date: text
    return _Declared(
        "object" if schema.get("type") == "object" else "wrapped", understood, data=(understood,)
    )


def encode_result(value: Any, revision: Revision, returns: ReturnType = UNDECLARED) -> Body:
    """Encode a function's return value for a revision; return it with its `_meta`.

    Raises `InvalidResult` if it breaks the declared type. Without one, the value alone decides.
    """
    if value.__class__ is str and (str in returns.declared.blocks or Any in returns.declared.data):
        return b'{"content":[{"type":"text","text":%b}]}' % jsonrpc.encode(value), None
    if isinstance(value, Encoded):
        return value.result, None
    if isinstance(value, CallResult):
        data = value.structured_content
        checked = UNDECLARED if value.is_error or returns.declared.kind is None else returns
        written = None if data is None and checked is UNDECLARED else checked.encode(data)
        return _join(value.content, written, checked, revision, value.is_error), value.meta
    if isinstance(value, Answer):
        data = value.structured
        written = None if data is None and returns.declared.kind is None else returns.encode(data)
        text = value.text
        if text is None:
            text = "null" if written is None else written.decode()
        extra = {"notes": value.notes, "next": value.next}
        return _join([Text(text)], written, returns, revision, extra=extra), value.meta
    blocks = returns.blocks(value)
    written = returns.encode(value) if blocks is None else None
    if written is not None:
        if returns.declared.form == "content":  # an enum of strings or a date, written as a string
            blocks, written = [Text(msgspec.json.decode(written))], None
        else:
            blocks = [Text(written.decode())]
    return _join(blocks or [], written, returns, revision), None


def _join(
    blocks: list[Content],
    written: bytes | None,
    returns: ReturnType,
    revision: Revision,
    is_error: bool = False,  # noqa: FBT001, FBT002
    extra: Mapping[str, tuple[str, ...]] = {},
) -> bytes:
    """Encode content and structure, with what was said beside the value in both."""
    added = {name: texts for name, texts in extra.items() if texts}
    content = [fit_block(block, revision) for block in blocks]
    if added:
        lines = [
            f"{name.capitalize().removesuffix('s')}: {text}"
            for name, texts in added.items()
            for text in texts
        ]
        content.append(Text("\n".join(lines)))
    structured: Any = None
    if revision.structured_output and written is not None:
        is_whole = returns.declared.form == "object" or (
            returns.declared.form != "wrapped" and written.startswith(b"{")
        )
        structured = Raw(written) if is_whole else {"result": Raw(written)}
    if added and revision.structured_output:
        # A client that shows only structured content must see the text too, not just the notes.
        if structured is None:
            structured = {"result": blocks[0].text if isinstance(blocks[0], Text) else ""}
        elif isinstance(structured, Raw):
            structured = msgspec.json.decode(structured, type=dict[str, Raw])
        structured |= added
    return jsonrpc.encode(CallResult(content, structured, is_error))


def error_result(error: ToolError) -> CallResult:
    """Return a tool error as a result that the model reads."""
    notes = [Text(error.note)] if error.note else []
    return CallResult([Text(error.message), *notes], error.structured, is_error=True)
