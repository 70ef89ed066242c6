"""RAM: the cost of a script in GB: a base, and each function of the game that it names, once.

Follows the game's own way, read in its source: every name in the script counts, whatever it is called on;
of an imported module only what stands at its top and the functions whose names are used; names that are only
declared (parameters, variables, what is taken out of an object) do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..netscript.parsing import Tree, parse, string_value, text_of
from .definitions import list_costs
from .paths import is_script, resolve
from .world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

BASE = 1.6
MAX_GB = 1024.0
_SPECIAL = {"document": 25.0, "window": 25.0, "hacknet": 4.0}
_OF_EVERY_OBJECT = frozenset(
    {"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString"}
    | {"valueOf", "__proto__", "__defineGetter__", "__defineSetter__"}
)
_FUNCTIONS = ("function_declaration", "generator_function_declaration")
_EVERYTHING = "*"


class BrokenScript(Exception):
    """The source cannot be a script, or an import is missing."""


class _Module:
    """The names that each part of a source refers to: its top, and its functions."""

    def __init__(self, source: str, path: str) -> None:
        root = parse(source.encode("utf-8", "replace"), path)
        problem = Tree(source, path).problem
        if problem is not None:
            raise BrokenScript(problem.message)
        self.top: set[str] = set()
        self.functions: dict[str, set[str]] = {}
        self.imported: dict[str, tuple[str, str]] = {}
        """Module and name behind each name that is imported."""
        self.modules: list[tuple[str, bool]] = []
        """What is imported, and whether everything of it counts."""
        for node in root.named_children:
            if node.type == "import_statement":
                self._read_import(node)
                continue
            exported = node.child_by_field_name("source") if node.type == "export_statement" else None
            if exported is not None:  # export … from
                is_all = not any(child.type == "export_clause" for child in node.named_children)
                self.modules.append((string_value(exported) or "", is_all))
                continue
            function = next((one for one in (node, *node.named_children) if one.type in _FUNCTIONS), None)
            if function is None:
                self.top |= set(_list_references(node))
            else:
                name = function.child_by_field_name("name")
                key = text_of(name) if name is not None else "default"
                self.functions[key] = set(_list_references(function))

    def _read_import(self, node: Node) -> None:
        source = node.child_by_field_name("source")
        module = (string_value(source) or "") if source is not None else ""
        clause = next((child for child in node.named_children if child.type == "import_clause"), None)
        parts = clause.named_children if clause is not None else []
        named = [part for part in parts if part.type == "named_imports"]
        self.modules.append((module, bool(parts) and not named))
        for specifier in (one for part in named for one in part.named_children):
            name, alias = specifier.child_by_field_name("name"), specifier.child_by_field_name("alias")
            if name is not None:
                self.imported[text_of(alias if alias is not None else name)] = (module, text_of(name))


def _list_references(node: Node) -> Iterator[str]:
    """Return the names that are used, not those that are only declared."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current.type in ("identifier", "shorthand_property_identifier"):
            if not _is_declared(current) and text_of(current) not in _OF_EVERY_OBJECT:
                yield text_of(current)
        elif current.type == "member_expression":
            target = current.child_by_field_name("property")
            if target is not None and text_of(target) not in _OF_EVERY_OBJECT:
                yield text_of(target)
        waiting.extend(current.named_children)


def _is_declared(name: Node) -> bool:
    parent = name.parent
    if parent is None:
        return False
    if parent.type in ("formal_parameters", "required_parameter", "optional_parameter", "array_pattern"):
        return True
    if parent.type == "pair_pattern":
        return parent.child_by_field_name("value") == name
    return parent.child_by_field_name("name") == name or parent.child_by_field_name("parameter") == name


def cost(world: World, host: str, path: str) -> float:
    """Return the cost of a script that is there; raises BrokenScript, also where an import is missing."""
    modules: dict[str, _Module] = {}
    waiting = [path]
    while waiting:
        current = waiting.pop()
        if current not in modules:
            source = world.servers[host].get(current)
            if source is None:
                raise BrokenScript(f"{current} is imported and missing")
            modules[current] = _Module(source, current)
            waiting += [_resolve_import(name) for name, _ in modules[current].modules]
    names = _collect_names(modules, path)
    costs = list_costs()
    total = BASE + sum(_SPECIAL.get(name, 0.0) + costs.get(name, 0.0) for name in names)
    total = min(round(total, 2), MAX_GB)
    return int(total) if total.is_integer() else total


def _collect_names(modules: dict[str, _Module], path: str) -> set[str]:
    """Follow the names from the script through what it imports."""
    reached: set[tuple[str, str]] = set()
    waiting = [(path, ""), *((path, name) for name in modules[path].functions)]
    names: set[str] = set()
    while waiting:
        place = waiting.pop()
        if place in reached:
            continue
        reached.add(place)
        module, part = place
        found = modules[module]
        if not part:
            for name, is_all in found.modules:
                inner = _resolve_import(name)
                waiting.append((inner, ""))
                if is_all:
                    waiting += [(inner, function) for function in modules[inner].functions]
        used = found.functions.get(part, set()) if part else found.top
        names |= used
        for name in used:
            waiting.append((module, name))
            if name in found.imported:
                source, original = found.imported[name]
                waiting.append((_resolve_import(source), original))
    return names


def _resolve_import(name: str) -> str:
    """Return the path of an import, whose extension may be left out."""
    path = resolve(name) or resolve(f"{name}.js")
    if path is None or not is_script(path):
        raise BrokenScript(f"{name} is no script")
    return path
