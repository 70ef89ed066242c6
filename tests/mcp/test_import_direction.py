"""The engine's imports go one way: no module imports, for types or late, one that imports it."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import bridgehead.mcp

ROOT = Path(bridgehead.mcp.__file__).parent


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parents[1]).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in ROOT.rglob("*.py")}
SOCKETS = "bridgehead.mcp.http.server"
"""Moves bytes on sockets and knows nothing of MCP; a connection and the list of them know each other."""


def imports_of(name: str, path: Path) -> Iterator[str]:
    """Name the engine's own modules that one imports, wherever in it; its packages go without saying."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package.split(".")[: len(package.split(".")) - node.level + 1]
            target = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                found = f"{target}.{alias.name}" if f"{target}.{alias.name}" in MODULES else target
                if found in MODULES and not f"{name}.".startswith(f"{found}."):
                    yield found


def test_no_two_modules_of_the_engine_import_each_other() -> None:
    graph = {name: set(imports_of(name, path)) for name, path in MODULES.items() if SOCKETS not in name}

    assert len(graph["bridgehead.mcp.dispatch"]) > 5
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules


def test_no_room_of_the_engine_is_crowded() -> None:
    folders = {path.parent for path in MODULES.values()}
    crowded = {folder.name: len(list(folder.glob("*.py"))) for folder in folders}

    assert {name: count for name, count in crowded.items() if count > 16} == {}
