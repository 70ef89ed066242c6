"""RAM: the cost of a script by the game's own rule, and why the game refuses a script.

The rule knows nothing of `ns`: it collects the names that a script mentions and adds up their costs. The
sections below follow it in order: references, modules, reachability, prices, override.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

from msgspec import Struct

from .definitions import Definitions
from .modules import Module, is_definitions, resolve_module
from .parsing import Node, TooLarge, Tree

BASE_GB = 1.6
MAX_GB = 1024.0
SCALES = (16, 4, 1)
"""The factor of a singularity function up to level 1 of Source-File 4, at level 2, and at level 3."""

# --- references ---------------------------------------------------------------------------------------------

_FUNCTION_DECLARATIONS = frozenset({"function_declaration", "generator_function_declaration"})
# Nodes that leave no code, and those that the game's walk skips although they do: enums, decorators, the
# operand of `satisfies` and `<T>x`.
_SKIPPED = frozenset(
    {
        "type_annotation",
        "type_arguments",
        "type_parameters",
        "type_alias_declaration",
        "interface_declaration",
    }
    | {"enum_declaration", "ambient_declaration", "function_signature", "method_signature", "decorator"}
    | {"abstract_method_signature", "satisfies_expression", "type_assertion", "implements_clause"}
    | {"import_statement", "export_clause", "index_signature", "instantiation_expression", "import_alias"}
    | {"asserts_annotation", "type_predicate_annotation", "opting_type_annotation"}
)
# The roles in which a name is declared or assigned, not read.
_DECLARING = {
    "variable_declarator": "name",
    "function_declaration": "name",
    "generator_function_declaration": "name",
    "function_expression": "name",
    "generator_function": "name",
    "class_declaration": "name",
    "class": "name",
    "arrow_function": "parameter",
    "catch_clause": "parameter",
    "required_parameter": "pattern",
    "optional_parameter": "pattern",
    "assignment_pattern": "left",
    "object_assignment_pattern": "left",
    "pair_pattern": "value",
    "assignment_expression": "left",
    "augmented_assignment_expression": "left",
    "internal_module": "name",
}
_PATTERNS = frozenset({"formal_parameters", "array_pattern", "rest_pattern"})
_JSX_ELEMENTS = frozenset({"jsx_opening_element", "jsx_closing_element", "jsx_self_closing_element"})
_OF_EVERY_OBJECT = frozenset(
    {"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString"}
    | {"valueOf", "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__"}
)
_GLOBAL, _DEFAULT, _OVERRIDE, _EVERYTHING = ".__GLOBAL__", ".__SPECIAL_DEFAULT_EXPORT__", ".__RAM__", ".*"


def _list_references(tree: Tree, filename: str) -> Iterator[tuple[str, str]]:
    """Yield every name that is read, each with the key that it belongs to.

    A top-level function declaration has its own key. Arrows, function expressions and methods belong to the
    enclosing function, at the top level to the module's global key.
    """
    waiting: list[tuple[Node, str]] = [(tree.root, filename + _GLOBAL)]
    while waiting:
        node, key = waiting.pop()
        if node.type in _SKIPPED:
            continue
        if key.endswith(_GLOBAL) and (own_key := _function_key(node, filename)) is not None:
            key = own_key
        if _is_read(node):
            if node.text not in _OF_EVERY_OBJECT:
                yield key, node.text
            continue
        children = node.children
        if node.type == "as_expression":
            children = node.named[:1]
        elif node.type in _JSX_ELEMENTS:
            children = [child for child in children if child is not node.field("name")]
        elif node.type == "required_parameter" and any(
            child.type in ("accessibility_modifier", "readonly") for child in children
        ):
            continue  # a parameter property, with its default value
        waiting.extend((child, key) for child in reversed(children))


def _function_key(node: Node, filename: str) -> str | None:
    if node.type in _FUNCTION_DECLARATIONS:
        name = node.field("name")
        return f"{filename}.{name.text}" if name is not None else None
    parent = node.parent
    is_default = parent is not None and parent.type == "export_statement" and parent.field("value") is node
    if is_default and node.type in ("function_expression", "generator_function"):
        return filename + _DEFAULT
    return None


def _is_read(node: Node) -> bool:
    parent = node.parent
    if parent is None or node.type == "shorthand_property_identifier":
        return parent is not None
    if node.type == "property_identifier":
        return parent.type == "member_expression" and parent.field("property") is node
    if node.type != "identifier" or parent.type in _PATTERNS:
        return False
    if parent.type == "for_in_statement" and parent.field("left") is node:
        return parent.field("kind") is None
    role = _DECLARING.get(parent.type)
    return role is None or parent.field(role) is not node


# --- modules ------------------------------------------------------------------------------------------------


class RamRefused(Exception):
    """The game refuses to calculate the cost, with its own message, or the script is too large to parse."""


class Names(Struct, frozen=True):
    """The names that a script reaches, or the figure that it sets itself by `ramOverride`."""

    names: list[str]
    override_gb: float | None = None


class Source(Struct, frozen=True):
    """The data that the rule needs of one file; depends on that file alone."""

    imports: list[tuple[str, bool, dict[str, str]]] = []
    """Of each import: the module, whether all of it is taken, and names there by names here."""
    lists: list[tuple[str | None, list[tuple[str, str]]]] = []
    """Of each export list: the module that it is from, and names here with names there."""
    references: list[tuple[str, str]] = []
    """Keys, each with a name that is read there."""
    override_gb: float | None = None
    problem: str | None = None
    """Where and why it cannot be parsed."""


def read_source(filename: str, text: str) -> Source:
    """Parse a file. Raises TooLarge."""
    with closing(Tree(text, filename)) as tree:
        if tree.problem is not None:
            line, column = tree.place_of(tree.problem.start)
            place = f"Error location: Line {line}, Column: {column}."
            return Source(problem=f"{place} Error message: {tree.problem.message}.")
        module = Module(tree)
        return Source(
            [
                (
                    imported.module,
                    imported.takes_all,
                    {name.local: name.name for name in imported.names if not name.is_literal},
                )
                for imported in module.imports
            ],
            [
                (exported.module, [(name.local, name.name) for name in exported.names])
                for exported in module.lists
            ],
            list(dict.fromkeys(_list_references(tree, filename))),
            _find_override(tree),
        )


def collect_names(
    filename: str,
    files: Mapping[str, str],
    server: str,
    read: Callable[[str, str], Source] = read_source,
) -> Names:
    """Return the names that a script reaches in its own file and in those that it imports."""
    references: dict[str, dict[str, None]] = {}
    waiting = deque([filename])
    known = {filename}
    while waiting:
        current = waiting.popleft()
        if current not in files:
            raise RamRefused(f'"{current}" does not exist on server: {server}')
        try:
            source = read(current, files[current])
        except TooLarge:
            raise RamRefused(f"{current} is too large to be read here; the game itself may do so.") from None
        if source.problem is not None:
            reason = f"Syntax error in {current}, server: {server}. {source.problem}"
            if current != filename:
                reason = f"Cannot parse module: {current}. Filename: {current}. Reason: {reason}"
            raise RamRefused(reason)
        for module in _add_references(source, current, files, references):
            if module not in known:
                known.add(module)
                waiting.append(module)
    return _reach(filename, references)


def _add_references(
    source: Source, filename: str, files: Mapping[str, str], references: dict[str, dict[str, None]]
) -> list[str]:
    """Add a file's references by key; return the files that it needs."""
    needed: list[str] = []
    imported: dict[str, str] = {}
    top = references.setdefault(filename + _GLOBAL, {})
    for module, takes_all, names in source.imports:
        if is_definitions(module, filename):
            continue
        target = resolve_module(module, filename, files.__contains__)
        if target is None:
            raise RamRefused(f'Invalid module: "{module}". Base module: "{filename}".')
        needed.append(target)
        top[target + _GLOBAL] = None
        if takes_all:
            top[target + _EVERYTHING] = None
        imported |= {local: f"{target}.{name}" for local, name in names.items()}

    def add(key: str, name: str, owner: str = filename) -> None:
        names = references.setdefault(key, {})
        if name in imported:
            names[imported[name]] = None
        names[f"{owner}.{name}"] = None
        names[name] = None

    for key, name in source.references:
        add(key, name)
    for module_of_list, exported in source.lists:
        for local, name in exported:
            if module_of_list is not None:
                # The game takes the text as it is: the path must be complete, with its extension.
                add(f"{filename}.{local}", name, module_of_list)
                needed.append(module_of_list)
            elif local != name:
                add(f"{filename}.{local}", name)
    if source.override_gb is not None:
        references[filename + _OVERRIDE] = {str(source.override_gb): None}
    return needed


# --- reachability -------------------------------------------------------------------------------------------


def _reach(filename: str, references: dict[str, dict[str, None]]) -> Names:
    """Follow the references breadth first from every key that starts with the file's name.

    So uncalled functions count in the script itself, but imported files count only what is reached.
    """
    override = references.get(filename + _OVERRIDE)
    if override is not None:
        return Names([], float(next(iter(override))))
    ordered = sorted(references)

    def list_keys(prefix: str) -> Iterator[str]:
        for place in range(bisect_left(ordered, prefix), len(ordered)):
            if not ordered[place].startswith(prefix):
                return
            yield ordered[place]

    waiting = deque(key for key in references if key.startswith(filename))
    reached = dict.fromkeys(waiting)
    while waiting:
        current = waiting.popleft()
        sources = (
            list_keys(current.removesuffix(_EVERYTHING)) if current.endswith(_EVERYTHING) else (current,)
        )
        for source in sources:
            for name in references.get(source, ()) if not source.endswith(_OVERRIDE) else ():
                if name not in reached:
                    reached[name] = None
                    waiting.append(name)
    return Names(list(reached))


# --- prices -------------------------------------------------------------------------------------------------

_PAGE = {"document": 25.0, "window": 25.0}
_HACKNET_GB = 4.0
# Functions whose comment in the definitions states a wrong cost: the stated cost, the real one, and whether
# Source-File 4 scales it. Applied only while the comment states exactly that.
_CORRECTIONS: dict[str, tuple[float | None, float, bool]] = {
    "getPurchasedServers": (None, 1.05, False),
    "deleteServer": (None, 2.25, False),
    "purchaseServer": (None, 2.25, False),
    "singularity.cat": (None, 0.5, True),
    "singularity.getDarkwebPrograms": (1.0, 0.5, True),
    "singularity.hospitalize": (0.25, 0.5, True),
    "singularity.getOwnedSourceFiles": (5.0, 5.0, True),
    "stanek.getFragment": (5.0, 2.0, False),
    "ui.clearTerminal": (0.2, 0.0, False),
}


class Price(Struct, frozen=True):
    """The RAM cost of a name."""

    name: str
    """As a script writes it, with `ns.` if it is of the API."""
    ram_gb: float
    is_scaled: bool = False


class Ram(Struct, frozen=True):
    """The names that cost RAM, most expensive first, and their sum with the base."""

    items: list[Price]
    total_gb: float
    is_override: bool = False


def list_prices(definitions: Definitions) -> dict[str, Price]:
    """Return the price of every name that has one. A name counts whatever object it is called on."""
    prices: dict[str, Price] = {}
    for name, functions in definitions.functions_by_name.items():
        for path, declaration in functions:
            stated, cost, is_scaled = _CORRECTIONS.get(path, (declaration.ram, 0.0, False))
            if path not in _CORRECTIONS or stated != declaration.ram:
                cost, is_scaled = declaration.ram or 0.0, declaration.is_scaled
            if cost:
                prices.setdefault(name, Price(f"ns.{path}", cost, is_scaled))
    # The namespace costs as a whole, unless its functions have costs of their own as in newer games.
    if not any(price.name.startswith("ns.hacknet.") for price in prices.values()):
        prices["hacknet"] = Price("ns.hacknet", _HACKNET_GB)
    return prices | {name: Price(name, cost) for name, cost in _PAGE.items()}


def calculate(
    filename: str,
    files: Mapping[str, str],
    prices: Mapping[str, Price],
    *,
    server: str,
    total: float | None = None,
    read: Callable[[str, str], Source] = read_source,
) -> Ram:
    """Return a script's cost; `total` is the game's, which reveals the level of Source-File 4.

    Raises RamRefused if the game would not calculate it. `files` must hold what the script imports.
    """
    reached = collect_names(filename, files, server, read)
    if reached.override_gb is not None:
        return Ram([], reached.override_gb, is_override=True)
    priced = [prices[name] for name in reached.names if name in prices]
    computed = [_add_up(priced, scale) for scale in SCALES]
    if total is not None:
        # If no factor gives the game's total, the first one is shown: a player without Source-File 4.
        return next((ram for ram in computed if abs(ram.total_gb - total) < 0.005), computed[0])  # noqa: PLR2004 - half a hundredth
    return computed[0]


def _add_up(priced: list[Price], scale: int) -> Ram:
    items = [
        Price(price.name, round(price.ram_gb * (scale if price.is_scaled else 1), 2)) for price in priced
    ]
    total = min(BASE_GB + sum(price.ram_gb for price in items), MAX_GB)
    return Ram(sorted(items, key=lambda price: (-price.ram_gb, price.name)), round(total, 2))


# --- override -----------------------------------------------------------------------------------------------


def _find_override(tree: Tree) -> float | None:
    """Return the figure of `ramOverride(n)` if it is the first statement of a function declaration `main`."""
    for node in tree.nodes:
        name = node.field("name") if node.type in _FUNCTION_DECLARATIONS else None
        body = node.field("body") if name is not None and name.text == "main" else None
        if body is None or not body.named or node.function is not None:
            continue
        statement = body.named[0]
        call = statement.named[0] if statement.type == "expression_statement" and statement.named else None
        called = call.field("function") if call is not None and call.type == "call_expression" else None
        if call is None or called is None:
            continue
        last = called.field("property") or called
        arguments = call.field("arguments")
        passed = arguments.named if arguments is not None else []
        if last.text != "ramOverride" or len(passed) != 1 or passed[0].type != "number":
            continue
        value = _read_number(passed[0].text)
        if value is not None and value >= BASE_GB:
            return round(value + 1e-9, 2)
    return None


def _read_number(text: str) -> float | None:
    digits = text.replace("_", "").lower()
    try:
        return float(int(digits, 0)) if digits[:2] in ("0x", "0o", "0b") else float(digits)
    except ValueError:
        return None
