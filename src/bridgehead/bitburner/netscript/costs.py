"""Costs: the RAM cost of each function that a script names, from the figures in the definitions.

The game counts names, each once, anywhere outside of strings and comments and whatever object they are called
on. It counts only names that are reachable from `main`; if the sum here differs, the game's figure is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from . import parsing
from .parsing import text_of, walk

if TYPE_CHECKING:
    from .definitions import Definitions

BASE = 1.6
# Not functions of the API: the game charges for access to its page too.
_PAGE = {"document": 25.0, "window": 25.0}
# Without shorthand_property_identifier_pattern: the game does not count a name that is only destructured, so
# `const { hack } = ns` counts where `hack` is used.
_NAMES = frozenset(
    {
        "identifier",
        "property_identifier",
        "shorthand_property_identifier",
    }
)
_SCALES = (16, 4, 1)
"""The factor of a scaled cost without Source-File 4, with its first level, and with its third."""
_CLOSE = 0.005


class Item(Struct, frozen=True):
    """A name that costs RAM."""

    name: str
    ram_gb: float


class Itemised(Struct, frozen=True):
    """The names that cost RAM, most expensive first, and their sum with the base."""

    items: list[Item]
    sum_gb: float


class Source(Struct, frozen=True):
    """A script or one of its imports."""

    filename: str
    content: str


def list_imports(content: str, filename: str) -> list[str]:
    """Return the modules that a script imports or exports from, as they are written."""
    root = parsing.parse(content.encode("utf-8", "replace"), filename)
    modules = []
    for node in walk(root):
        if node.type in ("import_statement", "export_statement"):
            source = node.child_by_field_name("source")
            # `import type` and `export type` leave no code, so the game does not load the module.
            is_type_only = any(child.type == "type" for child in node.children)
            if source is not None and not is_type_only:
                modules.append(parsing.string_value(source) or "")
    return [module for module in dict.fromkeys(modules) if module]


def resolve_import(importer: str, module: str) -> str:
    """Return the path of an imported module without its extension; relative ones start at the importer."""
    if module.startswith(("./", "../")):
        parts = importer.split("/")[:-1]
        for part in module.split("/"):
            if part == "..":
                parts = parts[:-1]
            elif part != ".":
                parts.append(part)
        path = "/".join(parts)
    else:
        path = module.lstrip("/")
    for extension in (".js", ".jsx", ".ts", ".tsx"):
        path = path.removesuffix(extension)
    return path


def itemise(sources: list[Source], definitions: Definitions, total: float | None) -> Itemised:
    """List the costs; the game's total, if known, tells which factor of Source-File 4 applies."""
    names: set[str] = set()
    for source in sources:
        root = parsing.parse(source.content.encode("utf-8", "replace"), source.filename)
        names |= {text_of(node) for node in walk(root) if node.type in _NAMES}
    best: Itemised | None = None
    for scale in _SCALES:
        items = [item for name in names if (item := _price(name, definitions, scale)) is not None]
        items.sort(key=lambda item: (-item.ram_gb, item.name))
        itemised = Itemised(items, round(BASE + sum(item.ram_gb for item in items), 2))
        if total is not None and abs(itemised.sum_gb - total) < _CLOSE:
            return itemised
        # If no factor gives the game's total, the first one is shown: a player without Source-File 4.
        best = best or itemised
    return best or Itemised([], BASE)


def _price(name: str, definitions: Definitions, scale: int) -> Item | None:
    if name in _PAGE:
        return Item(name, _PAGE[name])
    functions = definitions.functions_by_name.get(name)
    if functions:
        path, declaration = functions[0]
        cost = (declaration.ram or 0.0) * (scale if declaration.is_scaled else 1)
        return Item(f"ns.{path}", round(cost, 2)) if cost else None
    namespace = definitions.members.get("NS", {}).get(name)
    if namespace is not None and namespace.ram:
        return Item(f"ns.{name}", namespace.ram)
    return None
