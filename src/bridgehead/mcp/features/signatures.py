"""Signatures: an ordinary function as a tool. Its parameters become the input.

`def add(a: int, b: int = 2) -> int` needs no struct: one is made of its parameters. A parameter with the type
`Context` gets the context. Everything that clients or msgspec would refuse later is refused here, when the
tool is declared, with the names of the tool and the parameter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from ..errors import DeclarationError
from .docstrings import read_docstring
from .parameters import is_context, parameter_names, takes_struct
from .schema import flat_schema

_VARARGS, _VARKEYWORDS, _GENERATOR = 0x04, 0x08, 0x20 | 0x200

MAX_NAME = 64
_NAME_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
"""Characters that every client accepts in a tool's name; the Anthropic and OpenAI APIs reject others."""
_SUPPORTED = "str, int, float, bool, list, dict, Literal, an enum, a dataclass or a Struct"


def adapt(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return a handler for a function that takes its arguments one by one, or a struct alone."""
    names = parameter_names(function)
    annotations = getattr(function, "__annotations__", {})
    context_name = next(
        (name for name in names if name in annotations and is_context(annotations[name])), None
    )
    if takes_struct(function):
        return lambda arguments, _context: function(arguments)
    fields = tuple(name for name in names if name != context_name)

    def call(arguments: Any, context: Any) -> Any:
        values = {name: getattr(arguments, name) for name in fields}
        if context_name is not None:
            values[context_name] = context
        return function(**values)

    return call


def input_type(function: Callable[..., Any], name: str, base: type[Struct]) -> type[Struct]:
    """Return the struct of a function's arguments: the declared one, or one made of its parameters."""
    hints = read_hints(function, name)
    names = parameter_names(function)
    if takes_struct(function):
        declared: type[Struct] = hints[names[0]]
        return declared
    for star, name_of_rest in _find_rest(function).items():
        raise DeclarationError(
            f"Tool {name}: the parameter {star}{name_of_rest} cannot be an argument, which has a name and "
            "a type of its own. Use ordinary parameters."
        )

    described, defaults = read_docstring(function)[1], _read_defaults(function)
    fields: list[Any] = []
    for parameter in names:
        if parameter not in hints:
            raise DeclarationError(
                f"Tool {name}: the parameter {parameter} has no type. Annotate it, for example "
                f"{parameter}: str."
            )
        kind: Any = hints[parameter]
        if is_context(kind):
            continue
        if parameter in described:
            metadata = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
            if not any(isinstance(item, Meta) and item.description for item in metadata):
                kind = Annotated[kind, Meta(description=described[parameter])]
        if parameter not in defaults:
            fields.append((parameter, kind))
        elif isinstance(default := defaults[parameter], list | dict | set):
            copy = functools.partial(type(default), default)  # each call gets its own copy
            fields.append((parameter, kind, msgspec.field(default_factory=copy)))
        else:
            fields.append((parameter, kind, defaults[parameter]))
    title = "".join(word.title() for word in name.replace("-", "_").split("_"))
    return msgspec.defstruct(f"{title}Arguments", fields, bases=(base,), kw_only=True)


def _find_rest(function: Callable[..., Any]) -> dict[str, str]:
    """Return the parameters that a tool cannot have, by their prefix: "" (positional-only), "*" and "**"."""
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    named = code.co_argcount + code.co_kwonlyargcount
    rest = list(code.co_varnames[named:])
    unusable = {"": code.co_varnames[0]} if code.co_posonlyargcount else {}
    if code.co_flags & _VARARGS:
        unusable["*"] = rest.pop(0)
    if code.co_flags & _VARKEYWORDS:
        unusable["**"] = rest.pop(0)
    return unusable


def _read_defaults(function: Callable[..., Any]) -> dict[str, Any]:
    if isinstance(function, functools.partial):
        return {**_read_defaults(function.func), **function.keywords}
    names, positional = parameter_names(function), getattr(function, "__defaults__", None) or ()
    code = getattr(function, "__code__", None)
    last = len(names) - (0 if code is None else code.co_kwonlyargcount)
    with_defaults = names[last - len(positional) : last]
    return {
        **dict(zip(with_defaults, positional, strict=True)),
        **(getattr(function, "__kwdefaults__", None) or {}),
    }


def read_hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    """Return the evaluated annotations of a function."""
    while isinstance(function, functools.partial):
        function = function.func
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as problem:
        raise DeclarationError(
            f"Tool {name}: its signature names {problem.name!r}, which its module does not define. Define or "
            "import it there, outside of functions."
        ) from problem


# --- checks ------------------------------------------------------------------------------------------------


def check_function(function: Callable[..., Any], name: str) -> None:
    """Refuse a function that cannot be called as a tool."""
    names = parameter_names(function)
    if names[:1] == ("self",) or names[:1] == ("cls",):
        raise DeclarationError(
            f"Tool {name} is a method, and nobody would pass its {names[0]!r}. Declare a function, or the "
            "method of an object: bridge.tool(object.method)."
        )
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & _GENERATOR:
        raise DeclarationError(
            f"Tool {name} is a generator. Return the whole answer, and send progress with ctx.progress."
        )


def check_name(name: str, what: str) -> None:
    """Refuse a name that clients refuse."""
    if not 0 < len(name) <= MAX_NAME or not _NAME_LETTERS.issuperset(name):
        raise DeclarationError(
            f"{what} {name!r}: clients refuse this name. Use up to {MAX_NAME} letters, digits, '_' and '-'."
        )


def check_description(description: str, what: str, name: str) -> None:
    """Refuse a part without a description: a model chooses by it."""
    if not description.strip():
        raise DeclarationError(
            f"{what} {name} has no description, and a model chooses by it. Write one in the declaration or "
            "as the function's docstring."
        )


def check_input(kind: type[Struct], name: str) -> None:
    """Refuse an input that has no decoder or no schema, and name the parameter."""
    for field in msgspec.structs.fields(kind):
        try:
            msgspec.json.Decoder(field.type)
            flat_schema(field.type)
        except (TypeError, ValueError) as problem:
            raise DeclarationError(
                f"Tool {name}: the parameter {field.name} has the type {show_type(field.type)}. "
                f"{explain(problem)}"
            ) from problem


def explain(problem: Exception) -> str:
    """Say why msgspec refuses a type, and what to use instead."""
    text = str(problem)
    if "union" in text.lower():
        return (
            "JSON cannot tell its alternatives apart. Give each Struct a tag (tag=True), or use one "
            "parameter for each."
        )
    if "contains itself" in text:
        return f"{text}."
    return f"It has no JSON Schema. Use {_SUPPORTED}."


def show_type(kind: Any) -> str:
    """Show a type roughly as its author wrote it."""
    return (
        kind.__qualname__
        if isinstance(kind, type) and not get_args(kind)
        else str(kind).replace("typing.", "")
    )
