"""Scripts: find the API functions that a script uses, under whatever name it calls them, and its problems.

The game accepts a file with a problem silently; it fails when the script runs.

Follows the object that the game passes to `main` through parameters (named `ns`, typed `NS`, documented in a
JSDoc, or called with it), variables, destructuring, `this.ns` and namespaces such as `ns.singularity`.
Anything uncertain is ignored: a false alarm costs more than a missed problem.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct, field
from tree_sitter import Node

from . import parsing
from .parsing import FUNCTIONS, count_characters, find_syntax_problem, place_of, text_of, walk

if TYPE_CHECKING:
    from .definitions import Definitions
    from .search import DefinitionSearch

_SCOPES = FUNCTIONS | frozenset(
    {"program", "statement_block", "for_statement", "for_in_statement", "catch_clause", "class_body"}
)
_WRAPPERS = frozenset(
    {"parenthesized_expression", "as_expression", "non_null_expression", "satisfies_expression"}
)
_COMPARING = frozenset({"&&", "||", "??", "===", "!==", "==", "!=", "in"})
_NOTHING = frozenset({"null", "undefined"})
_JSDOC = re.compile(r"@param\s*\{\s*(?:import\([^)]*\)\.)?NS\s*\}\s*\[?(\w+)")
_NS_TYPE = re.compile(r":\s*(?:import\([^)]*\)\.)?NS\s*(?:\|\s*(?:null|undefined))?\s*")
_MAX_STEPS = 30
"""Variables followed in a row; `a = b; b = a` must end too."""
_ACCESSING = frozenset({"member_expression", "subscript_expression", "object_pattern"})
_DECLARING = FUNCTIONS | frozenset(
    {
        "variable_declarator",
        "class_declaration",
        "import_specifier",
        "namespace_import",
        "import_clause",
        "catch_clause",
        "for_in_statement",
        "call_expression",
        "public_field_definition",
        "assignment_expression",
        "augmented_assignment_expression",
    }
)
_MAX_PROBLEMS = 20
_MAX_NAMES = 3
_OF_EVERY_OBJECT = frozenset(
    {"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString"}
    | {"valueOf", "__proto__"}
)
_UNDOCUMENTED = frozenset(
    {"alterReality", "bypass", "dynamicImport", "exploit", "heart", "iKnowWhatImDoing", "openDevMenu"}
    | {"printRaw", "rainbow", "tprintRaw", "break", "factionGains", "hacknetNodes"}
)
"""Functions that the game has and its definitions leave out on purpose."""


class Problem(Struct, frozen=True):
    """Something that will fail when the script runs."""

    code: str
    message: str
    line: int
    column: int


class ApiUse(Struct, frozen=True):
    """A place where a script accesses a member of the API."""

    parent: str
    """The namespace: "" is ns itself."""
    name: str
    line: int
    column: int
    is_guarded: bool = False
    """Whether the script tests for the member, so that it may be missing."""

    @property
    def path(self) -> str:
        """The member as a script writes it after `ns.`."""
        return f"{self.parent}.{self.name}".lstrip(".")


class _Binding(Struct):
    """A declared name: the values assigned to it, or a parameter (function, index, node)."""

    values: list[tuple[Node, str]] = field(default_factory=list)
    """Expressions, each with the property taken from it ("" for the whole)."""
    parameter: tuple[Node, int, Node] | None = None
    is_foreign: bool = False
    """Whether its value cannot be known."""


def check_script(
    source: str, filename: str, definitions: Definitions, search: DefinitionSearch
) -> list[Problem]:
    """Return the syntax error of a script, or its uses of functions that the API does not have."""
    script = Script(source, filename, definitions)
    broken = find_syntax_problem(script.root)
    if broken is not None:
        column = count_characters(source, broken.line, broken.column)
        return [Problem("syntax_error", f"Syntax error: {broken.message}.", broken.line, column)]
    if filename.endswith(".script") or not definitions.namespaces or not definitions.members.get("NS"):
        # A `.script` file is NS1, where functions are globals; without definitions nothing is certain.
        return []
    unknown: dict[str, ApiUse] = {}
    for use in script.find_uses():
        is_certain = not use.is_guarded and use.name not in _OF_EVERY_OBJECT | _UNDOCUMENTED
        if is_certain and use.name not in definitions.members[definitions.namespaces[use.parent]]:
            unknown.setdefault(use.path, use)  # a name that is used often is reported once
    ordered = sorted(unknown.values(), key=lambda use: (use.line, use.column))[:_MAX_PROBLEMS]
    return [_describe_unknown(use, source, definitions, search) for use in ordered]


def _describe_unknown(
    use: ApiUse, source: str, definitions: Definitions, search: DefinitionSearch
) -> Problem:
    """Suggest functions of that name in other namespaces first, then similar names."""
    # `ns.connect` most likely means `ns.singularity.connect`, the same name elsewhere.
    interface = definitions.namespaces[use.parent]
    near = [f"{use.parent}.{name}".lstrip(".") for name in search.suggest(use.name, interface, _MAX_NAMES)]
    elsewhere = [path for path, _ in definitions.functions_by_name.get(use.name, ())]
    shown = []
    for path in list(dict.fromkeys([*elsewhere[:_MAX_NAMES], *near]))[:_MAX_NAMES]:
        declaration = definitions.find_path(path)
        parent = path.rpartition(".")[0]
        signature = " ".join(declaration.signature.split()) if declaration is not None else path
        prefix = f"ns.{parent}." if parent else "ns."
        shown.append(f"{prefix}{signature.removeprefix('readonly ').removesuffix(';')}")
    suggestion = f" Nearest: {'; '.join(shown)}." if shown else ""
    column = count_characters(source, use.line, use.column)
    return Problem("unknown_api", f"ns.{use.path} does not exist.{suggestion}", use.line, column)


class Script:
    """One source, parsed."""

    def __init__(self, source: str, filename: str, definitions: Definitions) -> None:
        self.root = parsing.parse(source.encode("utf-8", "replace"), filename)
        self._namespaces = definitions.namespaces
        self._scopes: dict[int, dict[str, _Binding]] = {}
        self._calls: dict[str, list[list[Node]]] = {}
        self._fields: dict[str, list[Node]] = {}
        self._typed_fields: set[str] = set()
        self._accesses: list[Node] = []
        """Member expressions and object patterns, in order."""
        assignments: list[Node] = []
        for node in walk(self.root):
            kind = node.type
            if kind in _ACCESSING:
                self._accesses.append(node)
            if kind not in _DECLARING:  # most nodes
                continue
            match kind:
                case "variable_declarator":
                    self._collect_variable(node)
                case "class_declaration" | "import_specifier" | "namespace_import" | "import_clause":
                    for name in node.named_children:
                        if name.type in ("identifier", "type_identifier"):
                            self._declare(name, _Binding(is_foreign=True), node)
                case "catch_clause" | "for_in_statement":
                    self._declare_foreign(
                        node.child_by_field_name("parameter") or node.child_by_field_name("left"), node
                    )
                case "call_expression":
                    function = node.child_by_field_name("function")
                    arguments = node.child_by_field_name("arguments")
                    if function is not None and function.type == "identifier" and arguments is not None:
                        self._calls.setdefault(text_of(function), []).append(arguments.named_children)
                case "public_field_definition":
                    field_name, typed = node.child_by_field_name("name"), node.child_by_field_name("type")
                    if field_name is not None and typed is not None and _NS_TYPE.fullmatch(text_of(typed)):
                        self._typed_fields.add(text_of(field_name))
                case "assignment_expression" | "augmented_assignment_expression":
                    assignments.append(node)
                case _:
                    self._collect_function(node)
        # Last: an assignment looks its name up, and a function may assign a name declared below it.
        for node in assignments:
            self._collect_assignment(node)

    def find_uses(self) -> list[ApiUse]:
        """Return every place where a member of the API is accessed, in order."""
        uses: list[ApiUse] = []
        for node in self._accesses:
            if node.type != "object_pattern":
                name = _property_of(node)
                target = node.child_by_field_name("property") or node.child_by_field_name("index")
                parent = self.resolve(node.child_by_field_name("object"))
                if parent is not None and name and target is not None:
                    uses.append(ApiUse(parent, name, *place_of(target), _is_guarded(node)))
            else:
                declarator = node.parent
                value = declarator.child_by_field_name("value") if declarator is not None else None
                parent = self.resolve(value if value is not None else node)
                if parent is not None:
                    # `const { a = 1 } = ns` has a default, so `a` may be missing.
                    uses += [
                        ApiUse(
                            parent,
                            key,
                            *place_of(name),
                            name.parent is not None and "assignment" in name.parent.type,
                        )
                        for name, key in _list_pattern(node)
                        if key
                    ]
        return uses

    # --- collecting names ----------------------------------------------------------------------------------

    def _collect_variable(self, node: Node) -> None:
        pattern, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if pattern is not None and pattern.type == "identifier":
            values = [] if value is None or value.type in _NOTHING else [(value, "")]
            self._declare(pattern, _Binding(values=values), node)
        elif pattern is not None and pattern.type == "object_pattern" and value is not None:
            self._declare_pattern(pattern, value, node)
        else:
            self._declare_foreign(pattern, node)

    def _collect_function(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        if name is not None and node.type.endswith("_declaration"):
            self._declare(name, _Binding(is_foreign=True), node.parent or node)
        single = node.child_by_field_name("parameter")
        parameters = node.child_by_field_name("parameters")
        listed = [single] if single is not None else list(parameters.named_children if parameters else ())
        for index, parameter in enumerate(node for node in listed if node.type != "comment"):
            # TypeScript wraps the pattern; a default value makes it the left side of an assignment.
            pattern = (
                parameter.child_by_field_name("pattern") or parameter.child_by_field_name("left") or parameter
            )
            if pattern.type == "identifier":
                self._declare(pattern, _Binding(parameter=(node, index, parameter)), node)
                # `constructor(private ns: NS)` also declares the field `this.ns`.
                if parameter.child_by_field_name("accessibility") or text_of(parameter).startswith(
                    ("private ", "public ", "protected ", "readonly ")
                ):
                    self._fields.setdefault(text_of(pattern), []).append(pattern)
            elif pattern.type == "object_pattern":
                self._declare_pattern(pattern, pattern, node)
            else:
                self._declare_foreign(pattern, node)

    def _collect_assignment(self, node: Node) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return
        if left.type == "identifier":
            binding = self._find_binding(left)
            if binding is None or right.type in _NOTHING:
                return
            # `ns ||= x`, or a parameter that is assigned again, has more values than one can follow.
            if node.type == "augmented_assignment_expression" or binding.parameter is not None:
                binding.is_foreign = True
            else:
                binding.values.append((right, ""))
        elif left.type == "member_expression" and _is_this(left):
            self._fields.setdefault(_property_of(left), []).append(right)

    def _declare_pattern(self, pattern: Node, value: Node, scope: Node) -> None:
        for name, key in _list_pattern(pattern):
            self._declare(name, _Binding(values=[(value, key)] if key else [], is_foreign=not key), scope)

    def _declare_foreign(self, pattern: Node | None, scope: Node) -> None:
        for name in walk(pattern) if pattern is not None else ():
            if name.type in ("identifier", "shorthand_property_identifier_pattern"):
                self._declare(name, _Binding(is_foreign=True), scope)

    def _declare(self, name: Node, binding: _Binding, scope: Node) -> None:
        while scope.type not in _SCOPES and scope.parent is not None:
            scope = scope.parent
        names = self._scopes.setdefault(scope.id, {})
        # Declared twice: it is uncertain which of the two is meant.
        if text_of(name) in names:
            binding = _Binding(is_foreign=True)
        names[text_of(name)] = binding

    def _find_binding(self, name: Node) -> _Binding | None:
        wanted, node = text_of(name), name.parent
        while node is not None:
            binding = self._scopes.get(node.id, {}).get(wanted)
            if binding is not None:
                return binding
            node = node.parent
        return None

    # --- following the API ---------------------------------------------------------------------------------

    def resolve(self, node: Node | None, steps: int = 0) -> str | None:
        """Return the namespace that an expression certainly is ("" is ns); None for everything else."""
        if node is None or steps > _MAX_STEPS:
            return None
        if node.type in _WRAPPERS:
            return self.resolve(node.named_children[0] if node.named_children else None, steps + 1)
        if node.type == "identifier":
            binding = self._find_binding(node)
            if binding is None or binding.is_foreign:
                return None
            if binding.parameter is not None:
                return "" if self._is_ns_parameter(*binding.parameter, steps) else None
            values = set()
            for value, key in binding.values:
                whole = self.resolve(value, steps + 1)
                values.add(whole if whole is None or not key else self._enter(whole, key))
            # Different values in different branches: uncertain.
            return values.pop() if len(values) == 1 else None
        if node.type in ("member_expression", "subscript_expression"):
            name = _property_of(node)
            if node.type == "member_expression" and _is_this(node):
                if name in self._typed_fields:
                    return ""
                values = {self.resolve(value, steps + 1) for value in self._fields.get(name, ())}
                return values.pop() if len(values) == 1 else None
            parent = self.resolve(node.child_by_field_name("object"), steps + 1)
            return None if parent is None or not name else self._enter(parent, name)
        # A parameter that is destructured where it is declared.
        if node.type == "object_pattern":
            parameter, owner = node, node.parent
            if owner is not None and owner.type != "formal_parameters":  # TypeScript has a node in between
                parameter, owner = owner, owner.parent
            function = owner.parent if owner is not None else None
            if owner is None or function is None or owner.type != "formal_parameters":
                return None
            siblings = [child.id for child in owner.named_children if child.type != "comment"]
            index = siblings.index(parameter.id)
            return "" if self._is_ns_parameter(function, index, parameter, steps) else None
        return None

    def _enter(self, parent: str, name: str) -> str | None:
        path = f"{parent}.{name}".lstrip(".")
        return path if path in self._namespaces else None

    def _is_ns_parameter(self, function: Node, index: int, parameter: Node, steps: int) -> bool:
        # A type decides, whatever the name. Without one: JSDoc, or the name `ns`, which callbacks of other
        # libraries use for other things.
        annotation = parameter.child_by_field_name("type")
        if annotation is not None:
            return _NS_TYPE.fullmatch(text_of(annotation)) is not None
        name = text_of(parameter.child_by_field_name("pattern") or parameter).partition("=")[0].strip()
        if (name == "ns" and not _is_callback(function)) or name in _documented(function):
            return True
        called = ""
        own_name, parent = function.child_by_field_name("name"), function.parent
        if own_name is not None:
            called = text_of(own_name) if function.type != "method_definition" else ""
        elif parent is not None and parent.type == "variable_declarator":
            declared = parent.child_by_field_name("name")
            called = text_of(declared) if declared is not None else ""
        # The game calls `main` with ns as its first argument.
        if called == "main" and index == 0:
            return True
        calls = self._calls.get(called, []) if called else []
        passed = [arguments[index] for arguments in calls if len(arguments) > index]
        # Every call in this file has to pass ns; calls from other files are not known here.
        return bool(passed) and all(self.resolve(argument, steps + 1) == "" for argument in passed)


def _list_pattern(pattern: Node) -> list[tuple[Node, str]]:
    """Return the names that an object pattern declares, each with its property ("" if unknown)."""
    declared: list[tuple[Node, str]] = []
    for child in pattern.named_children:
        if child.type == "shorthand_property_identifier_pattern":
            declared.append((child, text_of(child)))
        elif child.type == "object_assignment_pattern":
            name = child.child_by_field_name("left")
            if name is not None:
                declared.append((name, text_of(name)))
        elif child.type == "pair_pattern":
            key, value = child.child_by_field_name("key"), child.child_by_field_name("value")
            if key is not None and value is not None and value.type == "identifier":
                declared.append((value, text_of(key)))
        else:
            declared += [(node, "") for node in walk(child) if node.type == "identifier"]
    return declared


def _property_of(node: Node) -> str:
    target = node.child_by_field_name("property")
    if target is not None:
        return text_of(target)
    index = node.child_by_field_name("index")
    return (parsing.string_value(index) or "") if index is not None else ""


def _is_this(node: Node) -> bool:
    inner = node.child_by_field_name("object")
    return inner is not None and inner.type == "this"


def _is_callback(function: Node) -> bool:
    """Return whether a function is passed to a method, which then decides its arguments."""
    arguments = function.parent
    call = arguments.parent if arguments is not None and arguments.type == "arguments" else None
    called = call.child_by_field_name("function") if call is not None else None
    return called is not None and called.type == "member_expression"


def _documented(function: Node) -> list[str]:
    """Return the parameters that the JSDoc before a function types as NS."""
    node: Node | None = function
    while node is not None and node.type not in ("program", "statement_block", "class_body"):
        before = node.prev_named_sibling
        if before is not None and before.type == "comment":
            return _JSDOC.findall(text_of(before))
        node = node.parent
    return []


def _is_guarded(node: Node) -> bool:
    """Return whether a script tests for a member, which may then be missing.

    Players write `if (ns.x)`, `ns.x && …`, `typeof ns.x` and `ns.x?.()` for functions that only
    some versions of the game have.
    """
    parent = node.parent
    while parent is not None and parent.type == "parenthesized_expression":
        node, parent = parent, parent.parent
    if parent is None:
        return False
    if any(child.type == "optional_chain" for child in parent.children):
        return True
    if parent.type == "binary_expression":
        operator = parent.child_by_field_name("operator")
        return operator is not None and text_of(operator) in _COMPARING
    part = {"ternary_expression": "condition", "assignment_expression": "left"}.get(parent.type)
    if part is not None:
        return parent.child_by_field_name(part) == node
    return parent.type in ("unary_expression", "if_statement", "while_statement")
