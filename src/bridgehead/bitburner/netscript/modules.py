"""Modules: the imports and exports of a script, and the file that an import refers to in the game."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from msgspec import Struct

from ..game import paths
from .parsing import Node, TooLarge, Tree, string_value
from .scopes import pattern_names


class ImportedName(Struct, frozen=True):
    """One name of an import or a re-export: `a as b` is `a` there and `b` here."""

    name: str
    local: str
    node: Node
    is_literal: bool = False
    """Whether it is written as a string, `"a" as b`."""


class Import(Struct, frozen=True):
    """An import statement."""

    module: str
    node: Node
    """The string that names the module."""
    names: list[ImportedName]
    takes_all: bool
    """Whether it has a default import, `* as x`, or a name that is a string."""
    is_type: bool
    """Whether it is `import type`, which leaves no code."""
    default: Node | None = None
    """The name of a default import."""


class Export(Struct, frozen=True):
    """An `export { … }`, perhaps `from` a module."""

    module: str | None
    node: Node
    names: list[ImportedName]
    is_type: bool


class Module:
    """The imports and exports of one script."""

    def __init__(self, tree: Tree) -> None:
        self.imports: list[Import] = []
        self.lists: list[Export] = []
        """The export lists."""
        self.stars: list[Node] = []
        """The modules of `export *`, as strings."""
        self.exports: set[str] = set()
        """Every name that it exports, without those of `export *`."""
        for node in tree.root.children:
            if node.type == "import_statement":
                self._read_import(node)
            elif node.type == "export_statement":
                self._read_export(node)

    def _read_import(self, node: Node) -> None:
        source = node.field("source")
        if source is None:
            return
        names: list[ImportedName] = []
        takes_all = False
        clauses = [child for child in node.children if child.type == "import_clause"]
        for part in clauses[0].named if clauses else ():
            if part.type != "named_imports":
                takes_all = True
                continue
            names += [
                _read_name(specifier) for specifier in part.named if specifier.type == "import_specifier"
            ]
        takes_all |= any(name.is_literal for name in names)
        default = (
            next((part for part in clauses[0].named if part.type == "identifier"), None) if clauses else None
        )
        is_type = node.has_token("type")
        self.imports.append(Import(string_value(source) or "", source, names, takes_all, is_type, default))

    def _read_export(self, node: Node) -> None:
        source = node.field("source")
        clause = next((child for child in node.children if child.type == "export_clause"), None)
        if clause is not None:
            names = [
                _read_name(specifier) for specifier in clause.named if specifier.type == "export_specifier"
            ]
            module = None if source is None else string_value(source) or ""
            self.lists.append(Export(module, source or node, names, is_type=node.has_token("type")))
            self.exports |= {name.local for name in names}
        elif source is not None:
            named = next((child for child in node.children if child.type == "namespace_export"), None)
            if named is None:
                self.stars.append(source)
            self.exports |= {child.text for child in named.named} if named is not None else set()
        elif node.has_token("default"):
            self.exports.add("default")
        elif (declaration := node.field("declaration")) is not None:
            name = declaration.field("name")
            if name is not None:
                self.exports.add(name.text)
                return
            for declarator in declaration.named:
                pattern = declarator.field("name") if declarator.type == "variable_declarator" else None
                for declared in pattern_names(pattern) if pattern is not None else ():
                    self.exports.add(declared.text)


def _read_name(specifier: Node) -> ImportedName:
    name, alias = specifier.field("name"), specifier.field("alias")
    if name is None:
        return ImportedName("", "", specifier)
    text = string_value(name) or name.text
    local = alias or name
    return ImportedName(text, string_value(local) or local.text, name, is_literal=name.type == "string")


def is_definitions(module: str, importer: str) -> bool:
    """Return whether an import means the definition file, which the game skips in TypeScript only."""
    return module in paths.DEFINITIONS and importer.endswith((".ts", ".tsx"))


def resolve_module(module: str, importer: str, exists: Callable[[str], bool]) -> str | None:
    """Return the file that an import means; None if there is none.

    The game appends each extension in turn unless the name already ends with it.
    """
    path = _resolve_path(module, importer)
    if path is None:
        return None
    for extension in paths.SCRIPTS:
        candidate = path if path.endswith(extension) else path + extension
        if exists(candidate):
            return candidate
    return None


def _resolve_path(module: str, importer: str) -> str | None:
    """Return the path from the root; `./` and `../` start at the importer's folder, others at the root."""
    is_relative = module.startswith(("./", "../")) or "/./" in module or "/../" in module
    parts = importer.split("/")[:-1] if is_relative and not module.startswith("/") else []
    for part in module.removeprefix("/").split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif not part or not paths.FORBIDDEN.isdisjoint(part):
            return None
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def list_modules(content: str, filename: str) -> list[str]:
    """Return the modules that a script needs, as it writes them; none if it is too large to be read."""
    try:
        tree = Tree(content, filename)
    except TooLarge:
        return []
    with closing(tree):
        module = Module(tree)
        modules = [
            imported.module for imported in module.imports if not is_definitions(imported.module, filename)
        ]
        modules += [exported.module for exported in module.lists if exported.module is not None]
        modules += [string_value(star) or "" for star in module.stars]
    return list(dict.fromkeys(modules))
