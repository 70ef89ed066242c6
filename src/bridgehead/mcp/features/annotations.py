"""Annotations: what the type of a parameter or a result means. `understand` decides, for all declarations.

It returns the type that the engine decodes and describes, or refuses the declaration. Constraints are those
of msgspec's `Meta`, of annotated_types and of pydantic's `Field`; a plain string in `Annotated` is a
description. A constraint that is none of these is refused by its name; other metadata is ignored (PEP 593).
A type with something of pydantic's in it is read, written and described by pydantic, which is never imported
unless the author did.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from datetime import datetime, time
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec
from msgspec import NODEFAULT, Meta, Struct

from ..values.argument_errors import describe
from ..values.custom import make_custom, read_custom
from ..values.schema import flat_schema, inline, without_titles

Direction = Literal["argument", "result"]
_SUPPORTED = "str, int, float, bool, list, dict, Literal, an enum, a dataclass or a Struct"
_CONSTRAINTS = {
    "Gt": "gt",
    "Ge": "ge",
    "Lt": "lt",
    "Le": "le",
    "MultipleOf": "multiple_of",
    "MinLen": "min_length",
    "MaxLen": "max_length",
}
"""Constraints of annotated_types, with their names in `Meta`."""
_LIMITS = (*_CONSTRAINTS.values(), "pattern", "tz")
_FIELD_OPTIONS = {"annotation", "default", "default_factory", "description", "title", "examples"}
"""What pydantic's `Field` may say beside constraints."""
_FORMATS = {datetime: "date-time", time: "time"}
"""msgspec lists no format for these, since it also takes a time without an offset."""


class UnknownConstraint(TypeError):
    """A constraint that would have no effect."""


def understand(kind: Any, direction: Direction = "argument") -> Any:
    """Return the type to decode and to describe; raise TypeError if it would mean less than it says."""
    if "pydantic" in sys.modules and _has_pydantic(kind, set()):
        return _through_pydantic(kind, direction)
    return _understand(kind, direction, set())


def ignored_metadata(kind: Any) -> list[Any]:
    """Return the metadata in a type that has no meaning here."""
    if get_origin(kind) is not Annotated:
        return [item for inner in get_args(kind) for item in ignored_metadata(inner)]
    base, *metadata = get_args(kind)
    return [item for item in _spread(metadata) if _read_metadata(item) is None] + ignored_metadata(base)


def _understand(kind: Any, direction: Direction, seen: set[Any]) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if type(kind).__name__ == "TypeAliasType":
        if kind in seen:
            raise TypeError(f"{kind} contains itself. Make it a dataclass or a Struct.")
        return _understand(kind.__value__, direction, seen | {kind})
    if origin is Annotated:
        base = _understand(inner[0], direction, seen)
        meanings = [meaning for item in _spread(inner[1:]) if (meaning := _read_metadata(item)) is not None]
        return _constrain(base, meanings)
    if origin in {Union, UnionType}:
        options = [_understand(option, direction, seen) for option in inner]
        return _understand_union(kind if options == [*inner] else _join(options), options)
    if origin is Literal or not inner:
        if direction == "argument" and isinstance(kind, type) and kind in _FORMATS:
            return Annotated[kind, Meta(extra_json_schema={"format": _FORMATS[kind]})]
        _check_members(kind, set())
        return kind
    changed = tuple(
        item if item is Ellipsis or isinstance(item, list | TypeVar) else _understand(item, direction, seen)
        for item in inner
    )
    _check_members(origin, set())
    if changed == inner:
        return kind
    if hasattr(kind, "copy_with"):
        return kind.copy_with(changed)
    return origin[changed if len(changed) > 1 else changed[0]]


def _constrain(base: Any, meanings: list[Meta]) -> Any:
    """Annotate a type; what limits numbers or lengths applies to each member of a union but None."""
    limits = [meaning for meaning in meanings if any(getattr(meaning, word) is not None for word in _LIMITS)]
    if limits and get_origin(base) in {Union, UnionType}:
        base = _join([one if one is NoneType else _constrain(one, limits) for one in get_args(base)])
        meanings = [meaning for meaning in meanings if meaning not in limits]
    for meaning in meanings:
        base = Annotated[base, meaning]
    return base


def _join(options: list[Any]) -> Any:
    return Union[tuple(options)]  # noqa: UP007 - of any number


# --- metadata ----------------------------------------------------------------------------------------------


def _spread(metadata: Any) -> Iterator[Any]:
    """Take groups of constraints apart: `Interval`, `Len`, pydantic's `Field`."""
    for item in metadata:
        if _is_field(item):
            unknown = item._attributes_set.keys() - _FIELD_OPTIONS - {*_LIMITS, "allow_inf_nan"}  # noqa: SLF001
            if unknown:
                raise UnknownConstraint(f"Field({min(unknown)}=…)")
            yield Meta(description=item.description, title=item.title, examples=item.examples)
            yield from _spread(item.metadata)
        elif _package(item) in {"annotated_types", "pydantic"} and hasattr(item, "__iter__"):
            yield from _spread(item)
        else:
            yield item


def _read_metadata(item: Any) -> Meta | None:
    """Return what a piece of metadata says; None if it is not for us."""
    name, package = type(item).__name__, _package(item)
    if isinstance(item, Meta):
        return item
    if isinstance(item, str):
        return Meta(description=item)
    if package == "annotated_types" and name in _CONSTRAINTS:
        word = _CONSTRAINTS[name]
        return Meta(**{word: getattr(item, word)})
    if name in {"Doc", "DocInfo"}:
        return Meta(description=item.documentation)
    if name == "_PydanticGeneralMetadata":
        for word, value in vars(item).items():
            if word == "pattern" and isinstance(value, str):
                return Meta(pattern=value)
            if word != "allow_inf_nan":  # JSON has neither
                raise UnknownConstraint(f"{word}={value!r}")
        return Meta()
    if package in {"annotated_types", "pydantic", "msgspec"} and name != "Unit":
        raise UnknownConstraint(repr(item))
    return None


def _package(item: Any) -> str:
    return type(item).__module__.partition(".")[0]


def _is_field(item: Any) -> bool:
    return type(item).__name__ == "FieldInfo" and _package(item) == "pydantic"


def find_default(kind: Any) -> Any:
    """Return the default that pydantic's `Field` gives in `Annotated`; NODEFAULT without one."""
    for item in get_args(kind)[1:] if get_origin(kind) is Annotated else ():
        if _is_field(item) and not item.is_required():
            return item.get_default(call_default_factory=True)
    return NODEFAULT


def has_description(kind: Any) -> bool:
    """Whether an understood type is described."""
    metadata = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return any(isinstance(item, Meta) and item.description for item in metadata)


# --- classes with members ----------------------------------------------------------------------------------


def _members(kind: Any) -> dict[str, Any]:
    """Return the types of the members of a dataclass, a Struct, a TypedDict or a NamedTuple."""
    if not isinstance(kind, type):
        return {}
    is_named_tuple = issubclass(kind, tuple) and hasattr(kind, "_fields")
    if not (
        dataclasses.is_dataclass(kind) or issubclass(kind, Struct) or is_typeddict(kind) or is_named_tuple
    ):
        return {}
    try:
        return get_type_hints(kind, include_extras=True)
    except NameError:
        return {}  # msgspec says which name is missing


def _check_members(kind: Any, seen: set[Any]) -> None:
    """Refuse constraints of others inside of a class, where msgspec would ignore them."""
    if isinstance(kind, type):
        if kind in seen:
            return
        seen.add(kind)
    for name, member in _members(kind).items():
        for item in _spread(get_args(member)[1:]) if get_origin(member) is Annotated else ():
            meaning = _read_metadata(item)
            if meaning is not None and not isinstance(item, Meta | str):
                raise UnknownConstraint(f"{item!r} of its member {name}; write {meaning!r}")
        _check_members(member, seen)
    for inner in get_args(kind):
        _check_members(inner, seen)


class _Chosen(NamedTuple):
    tag: str
    by_value: dict[Any, Any]


def _understand_union(kind: Any, options: list[Any]) -> Any:
    """Tell classes without a msgspec tag apart by a member whose type is a `Literal`."""
    classes = [option for option in options if _members(option) and not _has_tag(option)]
    chosen = _find_tag(classes) if len(classes) > 1 else None
    if chosen is None:
        return kind
    others = [option for option in options if option not in classes and option is not NoneType]

    def read(value: Any) -> Any:
        if isinstance(value, dict):
            kind = chosen.by_value.get(value.get(chosen.tag))
            if kind is None:
                raise ValueError(f"Invalid enum value {value.get(chosen.tag)!r} - at `$.{chosen.tag}`")
            return msgspec.convert(value, kind, dec_hook=read_custom)
        return msgspec.convert(value, _join(others) if others else dict, dec_hook=read_custom)

    def schema() -> dict[str, Any]:
        return {
            "anyOf": [_require(flat_schema(option), chosen.tag) for option in (*classes, *others)],
            "discriminator": {"propertyName": chosen.tag},
        }

    custom = make_custom("Union", read, schema)
    return Union[custom, None] if NoneType in options else custom  # noqa: UP007


def _require(schema: dict[str, Any], tag: str) -> dict[str, Any]:
    required = schema.get("required", [])
    return schema if tag in required else {**schema, "required": [tag, *required]}


def _has_tag(kind: Any) -> bool:
    return issubclass(kind, Struct) and kind.__struct_config__.tag is not None


def _find_tag(classes: list[Any]) -> _Chosen | None:
    members = [_members(kind) for kind in classes]
    for name in members[0]:
        by_value: dict[Any, Any] = {}
        count = 0
        for kind, hints in zip(classes, members, strict=True):
            values = get_args(hints[name]) if get_origin(hints.get(name)) is Literal else ()
            count += len(values) or len(classes) ** 2
            by_value |= dict.fromkeys(values, kind)
        if count == len(by_value):
            return _Chosen(name, by_value)
    return None


# --- pydantic ----------------------------------------------------------------------------------------------


def _has_pydantic(kind: Any, seen: set[Any]) -> bool:
    """Whether a type has a model, a dataclass or a validator of pydantic's in it."""
    if isinstance(kind, type) and not get_args(kind):
        if kind in seen:
            return False
        seen.add(kind)
        if hasattr(kind, "__get_pydantic_core_schema__") or hasattr(kind, "__pydantic_core_schema__"):
            return True
        is_plain = not issubclass(kind, Struct)
        return is_plain and any(
            _has_pydantic(member, seen)
            or any(_is_field(item) for item in get_args(member)[1:] if get_origin(member) is Annotated)
            for member in _members(kind).values()
        )
    if get_origin(kind) is Annotated:
        base, *metadata = get_args(kind)
        return _has_pydantic(base, seen) or any(
            hasattr(item, "__get_pydantic_core_schema__") and not hasattr(item, "__iter__")
            for item in metadata
        )
    return any(_has_pydantic(inner, seen) for inner in get_args(kind))


def _through_pydantic(kind: Any, direction: Direction) -> Any:
    """Let pydantic read, write and describe a whole type."""
    from pydantic import TypeAdapter, ValidationError  # lazy: optional; the author has imported it

    try:
        adapter: Any = TypeAdapter(kind)
    except Exception as problem:
        first, _, _ = str(problem).partition("\n")
        raise TypeError(f"pydantic refuses it: {first}") from problem

    def read(value: Any) -> Any:
        if direction == "result":  # what was written may have other names than what is read
            if problems := describe(value, schema(), ""):
                raise ValueError(problems)
            return value
        try:
            return adapter.validate_json(msgspec.json.encode(value))
        except ValidationError as problem:
            texts = [
                f"{'.'.join(map(str, error['loc'])) or 'the value'}: {error['msg']}"
                for error in problem.errors(include_url=False, include_input=False)
            ]
            raise ValueError("; ".join(texts)) from None

    def schema() -> dict[str, Any]:
        mode = "validation" if direction == "argument" else "serialization"
        whole = adapter.json_schema(mode=mode, ref_template="{model}")
        return without_titles(inline(whole, whole.pop("$defs", {})))

    def write(value: Any) -> Any:
        return adapter.dump_python(value, mode="json", by_alias=True, warnings=False)

    try:
        schema()
    except Exception as problem:
        raise TypeError(f"pydantic has no JSON Schema for it: {problem}") from problem
    custom = make_custom(getattr(kind, "__name__", "Pydantic"), read, schema, write)
    texts = [item for item in get_args(kind)[1:] if isinstance(item, str)]
    return (
        Annotated[custom, Meta(description=texts[0])] if get_origin(kind) is Annotated and texts else custom
    )


# --- refusals ----------------------------------------------------------------------------------------------


def explain(problem: Exception) -> str:
    """Say why a type is refused, and what to use instead."""
    text = str(problem)
    if isinstance(problem, UnknownConstraint):
        return (
            f"The constraint {text} is not understood, and would have no effect. Use "
            "msgspec.Meta(ge=, gt=, le=, lt=, multiple_of=, min_length=, max_length=, pattern=)."
        )
    if "pydantic" in text or "contains itself" in text or text.startswith("Can only set"):
        return f"{text.partition(' - type `')[0].rstrip('.')}."
    if "union" in text.lower():
        return (
            "JSON cannot tell its alternatives apart. Give each class a member of its own Literal, or each "
            "Struct a tag (tag=True), or use one parameter for each."
        )
    return f"It has no JSON Schema. Use {_SUPPORTED}."


def show_type(kind: Any) -> str:
    """Show a type roughly as its author wrote it."""
    return (
        kind.__qualname__
        if isinstance(kind, type) and not get_args(kind)
        else str(kind).replace("typing.", "")
    )
