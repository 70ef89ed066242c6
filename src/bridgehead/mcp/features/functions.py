"""Functions: what an author's function means as a tool or a prompt, and how the engine calls it.

Its parameters become the input: `def add(a: int, b: int = 2) -> int` needs no struct. A first parameter that
is a strict struct holds all arguments. A parameter of type `Context` gets the context. Everything that
clients or msgspec would refuse later is refused here, with the names of the tool and the parameter.

Decorators that use `functools.wraps` keep the parameters of the function inside.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Struct

from ..calls.caller import Caller
from ..calls.context import Context
from ..coroutines import settle
from ..errors import INVALID_PARAMS, DeclarationError, ProtocolError, ToolError
from ..values.argument_errors import reword
from ..values.custom import encode, read_custom
from ..values.schema import flat_schema
from .annotations import explain, find_default, has_description, show_type, understand
from .docstrings import read_docstring

STRUCT_AND_CONTEXT = 2
MAX_NAME = 64
_NAME_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
"""Characters that every client accepts in a tool's name; the Anthropic and OpenAI APIs reject others."""


def read_parameters(function: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return the parameters by name, without the `self` of a bound method."""
    return inspect.signature(function).parameters


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function; refuse one without a name."""
    name: str = getattr(function, "__name__", "<lambda>")
    if name == "<lambda>":
        raise DeclarationError(f"{function!r} has no name. Give it one in the declaration: name=.")
    return name


def takes_struct(function: Callable[..., Any]) -> bool:
    """Whether the first parameter is a strict struct that holds all arguments, with the context beside it."""
    first, *others = read_parameters(function).values() or (None,)
    if first is None or len(others) >= STRUCT_AND_CONTEXT:
        return False
    # Only this annotation is evaluated: `get_type_hints` for 20 tools takes a millisecond of the start.
    kind = _evaluate(first.annotation, function)
    is_strict = (
        isinstance(kind, type) and issubclass(kind, Struct) and kind.__struct_config__.forbid_unknown_fields
    )
    return is_strict and all(is_context(other, function) for other in others)


def is_context(parameter: Parameter, function: Callable[..., Any], wanted: type = Context) -> bool:
    """Whether a parameter takes the context: its type is `Context`, perhaps optional, or it has none."""
    kind = parameter.annotation
    if kind is Parameter.empty:
        return wanted is Context
    if isinstance(kind, str):
        if wanted.__name__ not in kind:
            return False
        kind = _evaluate(kind, function)
    if isinstance(kind, str):  # imported for the type checker alone, say: the name decides
        name = kind.removeprefix("Optional[").replace("| None", "").replace("None |", "")
        return name.partition("[")[0].strip(" ]").rpartition(".")[2] == wanted.__name__
    options = get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,)
    return all(option is NoneType or (get_origin(option) or option) is wanted for option in options)


def _evaluate(annotation: Any, function: Callable[..., Any]) -> Any:
    """Evaluate one annotation; text that names something unknown is returned as it is."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, getattr(_innermost(function), "__globals__", {}))  # noqa: S307 - the author's own
    except Exception:  # noqa: BLE001 - not defined yet, say; reading the whole signature tells why
        return annotation


def _innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that the author wrote, inside of partials, decorators and callable objects."""
    while True:
        function = inspect.unwrap(function)
        if not isinstance(function, functools.partial):
            break
        function = function.func
    if not inspect.isroutine(function) and not isinstance(function, type):
        function = type(function).__call__
    return getattr(function, "__func__", function)


# --- calling -----------------------------------------------------------------------------------------------


def make_handler(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return a callable for the engine, which passes the decoded arguments and the context."""
    parameters = read_parameters(function)
    if takes_struct(function):
        if len(parameters) == STRUCT_AND_CONTEXT:
            return function
        return lambda arguments, _context: function(arguments)
    contexts = [name for name, parameter in parameters.items() if _is_injected(parameter, function)]
    callers = [name for name, parameter in parameters.items() if is_context(parameter, function, Caller)]
    fields = tuple(name for name in parameters if name not in contexts and name not in callers)

    def call(arguments: Any, context: Any) -> Any:
        values = {name: getattr(arguments, name) for name in fields}
        for name in contexts:
            values[name] = context
        for name in callers:
            values[name] = context.caller
        return function(**values)

    return call


ALL_VARIABLES = "variables"
"""The name of a parameter that gets all variables of a template, as a dict."""


def make_reader(
    function: Callable[..., Any], label: str, variables: Sequence[str] = (), optional: Sequence[str] = ()
) -> Callable[[dict[str, str], Any], Any]:
    """Return a callable for the engine, which passes the variables of a URI, by name, and the context.

    `optional` are the variables that a URI may leave out.
    """
    parameters = read_parameters(function)
    taken = {name: one for name, one in parameters.items() if name in variables}
    contexts = [n for n, one in parameters.items() if n not in taken and is_context(one, function)]
    callers = [n for n, one in parameters.items() if n not in taken and is_context(one, function, Caller)]
    others = [name for name in parameters if name not in {*taken, *contexts, *callers}]
    takes_all = ALL_VARIABLES in others and ALL_VARIABLES not in variables
    if others != ([ALL_VARIABLES] if takes_all else []):
        known = f"which has {', '.join(variables)}" if variables else "which has none"
        raise DeclarationError(f"{label}: the parameter {others[0]} is no variable of its URI, {known}.")
    missing = [name for name in variables if name not in taken]
    if missing and not takes_all:
        raise DeclarationError(f"{label}: its function has no parameter for the variable {missing[0]}.")
    for name in optional:
        if name in taken and taken[name].default is Parameter.empty:
            raise DeclarationError(f"{label}: a URI may leave out {name}, so its parameter needs a default.")
    hints = read_hints(function, label) if taken else {}
    fields = [_make_field(one, hints.get(name, str), label, {}) for name, one in taken.items()]
    kind = msgspec.defstruct("Variables", fields, kw_only=True)
    lists = {name for name in taken if get_origin(hints.get(name)) is list}

    def call(values: dict[str, str], context: Any) -> Any:
        split = {name: text.split("/") if name in lists else text for name, text in values.items()}
        try:
            read = msgspec.convert(split, kind, strict=False, dec_hook=read_custom)
        except msgspec.ValidationError as problem:
            raise ProtocolError(INVALID_PARAMS, f"{label}: {reword(str(problem))}") from problem
        passed = {name: getattr(read, name) for name in taken} | dict.fromkeys(contexts, context)
        passed |= dict.fromkeys(callers, context.caller)
        return function(**passed, **({ALL_VARIABLES: values} if takes_all else {}))

    return call


def make_completer(function: Callable[..., Any], label: str) -> Callable[[str, dict[str, str], Any], Any]:
    """Return a callable for the engine, which passes the text so far, the other values and the context."""
    parameters = list(read_parameters(function).values())
    takes_context = bool(parameters) and parameters[-1].annotation is not Parameter.empty
    takes_context = takes_context and is_context(parameters[-1], function)
    count = len(parameters) - takes_context
    if not 1 <= count <= STRUCT_AND_CONTEXT + (not takes_context):
        raise DeclarationError(
            f"{label} takes the text so far, the values of the other arguments and the context, or less: "
            "def complete(value: str, given: dict[str, str], ctx: Context) -> list[str]."
        )

    def call(value: str, given: dict[str, str], context: Any) -> Any:
        passed = (value, given, context)[:count]
        return function(*passed, context) if takes_context else function(*passed)

    return call


def _is_injected(parameter: Parameter, function: Callable[..., Any]) -> bool:
    return parameter.annotation is not Parameter.empty and is_context(parameter, function)


def run_in_thread(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return a handler that runs a blocking one in a thread."""

    def call(arguments: Any, context: Any) -> Any:
        try:
            return handler(arguments, context)
        except (StopIteration, GeneratorExit) as error:
            # A future refuses the first, so that its caller would wait for ever; the second closes callers.
            raise RuntimeError(f"the handler raised {type(error).__name__}") from error

    @functools.wraps(handler)
    async def run(arguments: Any, context: Any) -> Any:
        return await asyncio.to_thread(call, arguments, context)

    return run


def stop_after(handler: Callable[..., Any], seconds: float, name: str) -> Callable[..., Any]:
    """Return a handler that is cancelled after so many seconds."""

    @functools.wraps(handler)
    async def run(arguments: Any, context: Any) -> Any:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await settle(handler(arguments, context))
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ToolError(f"{name} took longer than {seconds:g} s and was stopped.") from error

    return run


# --- the input ---------------------------------------------------------------------------------------------


def input_type(function: Callable[..., Any], label: str, base: type[Struct]) -> type[Struct]:
    """Return the struct of a function's arguments: the declared one, or one made of its parameters."""
    hints = read_hints(function, label)
    parameters = read_parameters(function)
    if takes_struct(function):
        declared: type[Struct] = hints[next(iter(parameters))]
        return declared
    described = read_docstring(function)[1]
    fields: list[Any] = []
    for parameter in parameters.values():
        star = _STARS.get(parameter.kind)
        if star is not None:
            raise DeclarationError(
                f"{label}: the parameter {star}{parameter.name} cannot be an argument, which has a name "
                "and a type of its own. Use ordinary parameters. A decorator keeps those of its function "
                "with functools.wraps."
            )
        if parameter.name not in hints:
            raise DeclarationError(
                f"{label}: the parameter {parameter.name} has no type. Annotate it, for example "
                f"{parameter.name}: str."
            )
        if is_context(parameter, function) or is_context(parameter, function, Caller):
            continue
        fields.append(_make_field(parameter, hints[parameter.name], label, described))
    return msgspec.defstruct("Input", fields, bases=(base,), kw_only=True)


def _make_field(parameter: Parameter, written: Any, label: str, described: Mapping[str, str]) -> Any:
    """Return a field of the struct of the arguments: its name, its type and its default."""
    try:
        kind: Any = understand(written)
    except TypeError as problem:
        raise refuse_type(label, parameter.name, written, problem) from problem
    if parameter.name in described and not has_description(kind):
        kind = Annotated[kind, Meta(description=described[parameter.name])]
    default = find_default(written) if parameter.default is Parameter.empty else parameter.default
    if isinstance(default, list | dict | set):
        copy = functools.partial(type(default), default)  # each call gets its own copy
        default = msgspec.field(default_factory=copy)
    return (parameter.name, kind) if default is NODEFAULT else (parameter.name, kind, default)


_STARS: dict[Any, str] = {
    Parameter.POSITIONAL_ONLY: "",
    Parameter.VAR_POSITIONAL: "*",
    Parameter.VAR_KEYWORD: "**",
}
"""Kinds of parameters that a tool cannot have, with their prefix."""


def read_hints(function: Callable[..., Any], label: str) -> dict[str, Any]:
    """Return the evaluated annotations of a function."""
    try:
        return get_type_hints(_innermost(function), include_extras=True)
    except NameError as problem:
        raise DeclarationError(
            f"{label}: its signature names {problem.name!r}, which its module does not define. Define or "
            "import it there, outside of functions."
        ) from problem


# --- checks ------------------------------------------------------------------------------------------------


def check_function(function: Callable[..., Any], label: str) -> None:
    """Refuse a function that cannot be called as a tool."""
    first = next(iter(read_parameters(function)), "")
    if first in {"self", "cls"}:
        raise DeclarationError(
            f"{label} is a method, and nobody would pass its {first!r}. Declare a function, or the "
            "method of an object: bridge.tool(object.method)."
        )
    written = _innermost(function)
    if inspect.isgeneratorfunction(written) or inspect.isasyncgenfunction(written):
        raise DeclarationError(
            f"{label} is a generator. Return the whole answer, and send progress with ctx.progress."
        )


def check_name(name: str, what: str) -> None:
    """Refuse a name that clients refuse."""
    if not 0 < len(name) <= MAX_NAME or not _NAME_LETTERS.issuperset(name):
        raise DeclarationError(
            f"{what} {name!r}: clients refuse this name. Use up to {MAX_NAME} letters, digits, '_' and '-'."
        )


def check_description(description: str, label: str) -> None:
    """Refuse a part without a description: a model chooses by it."""
    if not description.strip():
        raise DeclarationError(
            f"{label} has no description, and a model chooses by it. Write one in the declaration or "
            "as the function's docstring."
        )


def check_input(kind: type[Struct], label: str) -> None:
    """Refuse an input that has no decoder or no schema, or a default that does not fit, by its parameter."""
    for field in msgspec.structs.fields(kind):
        try:
            decoder = msgspec.json.Decoder(field.type, dec_hook=read_custom)
            flat_schema(field.type)
        except (TypeError, ValueError, RecursionError) as problem:
            raise refuse_type(label, field.name, field.type, problem) from problem
        default = field.default
        if field.default_factory is not NODEFAULT:
            default = field.default_factory()
        if default is None or default is NODEFAULT or default is UNSET:  # left out
            continue
        try:
            decoder.decode(encode(default))
        except (TypeError, ValueError, OverflowError) as problem:
            raise DeclarationError(
                f"{label}: the parameter {field.name} has the default {default!r}, which does not fit: "
                f"{reword(str(problem), 'it')}. Constraints and descriptions belong to the type: "
                "Annotated[int, Meta(ge=1)] = 3."
            ) from problem


def refuse_type(label: str, parameter: str, kind: Any, problem: Exception) -> DeclarationError:
    """Make the error for the type of a parameter."""
    return DeclarationError(
        f"{label}: the parameter {parameter} has the type {show_type(kind)}. {explain(problem)}"
    )


def check_item(item: Struct, label: str) -> None:
    """Refuse a part whose entry in a list is no JSON."""
    try:
        msgspec.json.encode(item)
    except (TypeError, ValueError, OverflowError) as problem:
        raise DeclarationError(f"{label} cannot be listed: {problem}") from problem
