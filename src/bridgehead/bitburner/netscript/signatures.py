"""Signatures: parameters and return type of an API function, read from its declaration.

Only as much of TypeScript's types as a literal argument can contradict: `string`, `number`, `boolean`,
arrays, functions, objects, and the values of enums and literal types. Everything else accepts anything.
"""

from __future__ import annotations

import re

from msgspec import Struct

from .definitions import Definitions
from .parsing import Node, Tree, string_value

_MAX_ALIASES = 5
"""Limit of a chain of type aliases."""
_SIMPLE = {"string": "string", "number": "number", "boolean": "boolean", "object": "object"}
_LETTERS = re.compile(r"[^a-z0-9]")
_VALUES_OF = re.compile(r"_?ValueOf<(\w+)>")
_OBJECT_OF_TEXTS = re.compile(r"(?:export\s+)?type\s+\w+\s*=\s*\{(?:\s*\w+:\s*\"[^\"\n]*\";?)+\s*\};?")
_TEXT_VALUE = re.compile(r"[:=]\s*([\"'])((?:(?!\1)[^\\\n]|\\.)*)\1")


class Kinds(Struct, frozen=True):
    """The kinds of values that a parameter accepts."""

    names: frozenset[str] = frozenset()
    """Of string, number, boolean, array, object, function; "any" accepts everything."""
    values: frozenset[str] = frozenset()
    """The strings of an enum or of literal types, in lower case without punctuation."""

    def __or__(self, other: Kinds) -> Kinds:
        return Kinds(self.names | other.names, self.values | other.values)


class Parameter(Struct, frozen=True):
    """A parameter of a function."""

    name: str
    kinds: Kinds
    is_required: bool


class Signature(Struct, frozen=True):
    """One overload of a function."""

    parameters: list[Parameter]
    has_rest: bool
    returns: str
    """Its type, as the definitions write it."""

    @property
    def returns_promise(self) -> bool:
        """Whether a script has to wait for the result."""
        return self.returns.startswith("Promise<")

    @property
    def required(self) -> int:
        """The smallest number of arguments."""
        return sum(parameter.is_required for parameter in self.parameters)


ANYTHING = Kinds(frozenset({"any"}))


class Signatures:
    """The signatures of the API's functions, each read when it is first asked for."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._read: dict[str, list[Signature]] = {}
        self._types: dict[str, Kinds] = {}

    def of(self, path: str) -> list[Signature]:
        """Return all overloads of a function such as `singularity.connect`; none if it is no function."""
        if path not in self._read:
            parent, _, name = path.rpartition(".")
            interface = self._definitions.namespaces.get(parent, "")
            declaration = self._definitions.members.get(interface, {}).get(name)
            overloads = (
                self._definitions.overloads.get(declaration.symbol, []) if declaration is not None else []
            )
            parsed = [self._parse(overload.signature) for overload in overloads if overload.is_function]
            self._read[path] = [signature for signature in parsed if signature is not None]
        return self._read[path]

    def _parse(self, text: str) -> Signature | None:
        tree = Tree(f"interface I {{ {text} }}", "a.ts")
        member = next(
            (node for node in tree.nodes if node.type in ("method_signature", "function_type")), None
        )
        listed = member.field("parameters") if member is not None else None
        if member is None or listed is None:
            return None
        parameters: list[Parameter] = []
        has_rest = False
        for parameter in listed.named:
            pattern, typed = parameter.field("pattern"), parameter.field("type")
            if pattern is None or pattern.text == "this":
                continue
            has_rest |= pattern.type == "rest_pattern"
            kinds = self._kinds_of(typed.named[0], 0) if typed is not None and typed.named else ANYTHING
            # The definitions of 2.x write defaults: `getMoveHistory(playAsWhite = false)`.
            is_optional = pattern.type == "rest_pattern" or parameter.field("value") is not None
            is_required = parameter.type == "required_parameter" and not is_optional
            parameters.append(
                Parameter(pattern.text, ANYTHING if pattern.type == "rest_pattern" else kinds, is_required)
            )
        returned = member.field("return_type")
        text = returned.text.removeprefix(":").removeprefix("=>").strip() if returned is not None else ""
        return Signature(parameters, has_rest, text)

    def _kinds_of(self, node: Node, depth: int) -> Kinds:
        match node.type:
            case "predefined_type":
                return Kinds(frozenset({_SIMPLE.get(node.text, "any")}))
            case "union_type":
                kinds = Kinds()
                for part in node.named:
                    kinds |= self._kinds_of(part, depth)
                return kinds
            case "parenthesized_type" | "readonly_type":
                return self._kinds_of(node.named[0], depth) if node.named else ANYTHING
            case "array_type" | "tuple_type":
                return Kinds(frozenset({"array"}))
            case "function_type":
                return Kinds(frozenset({"function"}))
            case "object_type":
                return Kinds(frozenset({"object"}))
            case "literal_type":
                inner = node.named[0] if node.named else node
                value = string_value(inner)
                if value is not None:
                    return Kinds(values=frozenset({simplify(value)}))
                if inner.type in ("undefined", "null"):
                    return Kinds()
                return Kinds(frozenset({"number" if inner.type == "number" else "any"}))
            case "template_literal_type":
                # `${CityName}` is the values of the enum, which stands beside it in the union.
                name = next((child.text for child in node.children if child.type == "template_type"), "")
                return self._named(name.removeprefix("${").removesuffix("}").strip(), depth)
            case "type_identifier":
                return self._named(node.text, depth)
            case "generic_type":
                # _ValueOf<CityNameEnumType>: the values of an object of strings.
                values_of = _VALUES_OF.fullmatch(node.text)
                return self._named(values_of[1], depth) if values_of is not None else ANYTHING
            case _:
                return ANYTHING

    def _named(self, name: str, depth: int) -> Kinds:
        if name not in self._types:
            self._types[name] = ANYTHING  # a type that mentions itself
            self._types[name] = self._read_named(name, depth + 1) if depth < _MAX_ALIASES else ANYTHING
        return self._types[name]

    def _read_named(self, name: str, depth: int) -> Kinds:
        declaration = self._definitions.by_symbol.get(name)
        if declaration is None:
            return ANYTHING
        text = declaration.signature
        if "enum " in text.partition("{")[0] or _OBJECT_OF_TEXTS.fullmatch(text):
            values = frozenset(simplify(value) for _, value in _TEXT_VALUE.findall(text))
            return Kinds(values=values) if values else ANYTHING
        if re.match(r"(?:export\s+)?(?:declare\s+)?interface\s", text):
            return Kinds(frozenset({"object", "array", "function"}))
        tree = Tree(text, "a.ts")
        alias = next((node for node in tree.nodes if node.type == "type_alias_declaration"), None)
        value = alias.field("value") if alias is not None else None
        if value is None or alias is None or alias.field("type_parameters") is not None:
            return ANYTHING
        return self._kinds_of(value, depth)


def simplify(text: str) -> str:
    """Return a value of an enum as the game compares it: without case and punctuation."""
    return _LETTERS.sub("", text.lower())


def fits(argument: Node, kinds: Kinds) -> bool:
    """Return whether a literal argument fits; anything but a literal fits.

    The game turns numbers into strings and numeric strings into numbers, and takes anything for a boolean.
    """
    if "any" in kinds.names or "boolean" in kinds.names or not (kinds.names or kinds.values):
        return True
    match argument.type:
        case "string":
            text = string_value(argument) or ""
            if "string" in kinds.names or simplify(text) in kinds.values:
                return True
            return "number" in kinds.names and re.fullmatch(r"\s*[-+]?[\d.]+.*", text) is not None
        case "template_string":
            return "string" in kinds.names or bool(kinds.values)
        case "number":
            return not kinds.names.isdisjoint({"number", "string"})
        case "true" | "false":
            return False
        case "array":
            return not kinds.names.isdisjoint({"array", "object"})
        case "object":
            return "object" in kinds.names
        case "arrow_function" | "function_expression":
            return "function" in kinds.names
        case _:
            return True


def describe(kinds: Kinds) -> str:
    """Name what a parameter accepts."""
    articles = [f"{'an' if name in ('array', 'object') else 'a'} {name}" for name in sorted(kinds.names)]
    return " or ".join([*articles, *(["one of the values in the definitions"] if kinds.values else [])])
