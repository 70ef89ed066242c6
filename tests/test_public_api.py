"""The public face: what the layers above import of the engine and of the runtime, and what its page says."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

import bridgehead
from bridgehead import mcp, runtime

SOURCE = Path(bridgehead.__file__).parent
PAGE = (SOURCE.parents[1] / "docs" / "public-api.md").read_text(encoding="utf-8")
ENGINE_PAGE = (SOURCE.parents[1] / "docs" / "engine.md").read_text(encoding="utf-8")
LOWER = ("bridgehead.mcp", "bridgehead.runtime")
PUBLIC_MODULES = {
    "bridgehead.mcp",
    "bridgehead.mcp.http",
    "bridgehead.mcp.http.message",
    "bridgehead.mcp.http.server",
    "bridgehead.mcp.in_memory",
    "bridgehead.mcp.jsonrpc",
    "bridgehead.mcp.stdio",
    *(f"bridgehead.runtime.{name}" for name in runtime.__all__),
    "bridgehead.runtime",
    "bridgehead.runtime.stores.redis_check",
    "bridgehead.runtime.stores.rate_windows",
    "bridgehead.runtime.stores.redis",
}
ENGINE_ONLY = {"cancel", "is_interrupted", "miss_extension", "outlet", "supply_answers", "used_answers"}
"""Members of the context that only the engine uses."""
ABOVE = sorted(
    path
    for path in SOURCE.rglob("*.py")
    if path.relative_to(SOURCE).parts[0] not in ("mcp", "runtime", "__init__.py", "__main__.py")
)


def crossings(path: Path) -> Iterator[tuple[str, str]]:
    """Give each name that a file imports of the engine or of the runtime, with its module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(LOWER):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.startswith(LOWER))


def is_public(module: str, name: str) -> bool:
    if module not in PUBLIC_MODULES or name.startswith("_"):
        return False
    exported = getattr(import_module(module), "__all__", None)
    return exported is None or name in exported


@pytest.mark.parametrize("path", ABOVE, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_only_what_is_public_is_imported_from_above(path: Path) -> None:
    is_host = path.relative_to(SOURCE).parts[0] == "host"
    reached = [
        f"{module}.{name}"
        for module, name in crossings(path)
        if not is_public(module, name) and not (is_host and module.startswith("bridgehead.mcp.http."))
    ]

    assert reached == []


def test_what_is_exported_is_there() -> None:
    assert [name for name in mcp.__all__ if not hasattr(mcp, name)] == []
    for name in runtime.__all__:
        import_module(f"bridgehead.runtime.{name}")


def test_the_page_names_every_public_module() -> None:
    assert [name for name in sorted(PUBLIC_MODULES) if f"`{name}`" not in PAGE] == []


def names_for_authors() -> Iterator[str]:
    """Give what an author can write: names of the engine, options of declarations, the context."""
    yield from mcp.__all__
    for function in (mcp.Bridge, mcp.Bridge.tool, mcp.http.application, mcp.in_memory.connect):
        yield from (name for name in signature(function).parameters if name not in {"self", "bridge"})
    yield from (name for name in vars(mcp.Context) if not name.startswith("_") and name not in ENGINE_ONLY)


def test_the_page_of_the_engine_explains_every_name_and_option_of_an_author() -> None:
    assert [name for name in names_for_authors() if not re.search(rf"\b{name}\b", ENGINE_PAGE)] == []
