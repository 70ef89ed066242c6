"""The tree: tests that can be guessed, and no imports in a circle."""

import ast
from collections.abc import Container, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "bridgehead"
TESTS = ROOT / "tests"
MODULES = sorted(SOURCE.rglob("*.py"))


def nouns() -> list[Path]:
    return [module.relative_to(SOURCE) for module in MODULES if not module.name.startswith("__")]


def has_test(noun: Path) -> bool:
    """Tell whether there is a test file where somebody who knows the noun's place looks for it."""
    return (TESTS / noun.parent / f"test_{noun.stem}.py").exists()


def test_every_noun_has_a_test_file_of_its_name() -> None:
    missing = [str(noun) for noun in nouns() if not has_test(noun)]

    assert missing == []


def test_no_modules_import_each_other_in_a_circle_when_they_run() -> None:
    modules = name_modules()
    graph = {name: find_imports(name, modules) for name in modules}

    assert find_circle(graph) == []


@pytest.mark.parametrize(
    "line",
    [
        "import bridgehead.runtime.stores.redis",
        "import os, bridgehead.runtime.stores.redis as redis",
        "from bridgehead.runtime.stores import redis",
        "from bridgehead.runtime.stores.redis import Redis",
        "from ..stores import redis",
        "from ..stores.redis import Redis",
        "from . import redis",
        "from .redis import Redis",
        "def open(): from . import redis",
    ],
)
def test_every_form_of_import_is_seen(line: str) -> None:
    assert read_imports(line, ("runtime", "stores"), {"runtime.stores", "runtime.stores.redis"}) == {
        "runtime.stores.redis"
    }


def test_modules_of_others_are_not_taken_for_ours() -> None:
    assert read_imports("import mcp\nfrom mcp import types\nimport redis", (), {"mcp", "redis"}) == set()


def test_no_text_is_split_at_what_editors_take_for_characters() -> None:
    """`splitlines` also ends a line at a form feed or U+2028; `runtime.lines` and `split` do not."""
    uses = [
        f"{module.relative_to(SOURCE)}:{node.lineno}"
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "splitlines"
    ]

    assert uses == []


def name_modules() -> dict[str, Path]:
    names = {module: ".".join(module.relative_to(SOURCE).with_suffix("").parts) for module in MODULES}
    return {name.removesuffix("__init__").removesuffix("."): module for module, name in names.items()}


def find_imports(importer: str, modules: dict[str, Path]) -> set[str]:
    """Return what a module imports of ours, at its top or late; a type may name what uses it."""
    package = modules[importer].relative_to(SOURCE).parent.parts
    text = modules[importer].read_text(encoding="utf-8")
    return read_imports(text, package, modules) - {importer, ""}


def read_imports(text: str, package: tuple[str, ...], modules: Container[str]) -> set[str]:
    """Return the modules that a text imports, by their names inside of `bridgehead`."""
    found: set[str] = set()
    for node in walk_what_runs(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(name_inside(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ["bridgehead", *package[: len(package) + 1 - node.level]] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            names = [name_inside(f"{base}.{alias.name}") for alias in node.names]
            found.update(name if name in modules else name_inside(base) for name in names)
    return {name for name in found if name in modules}


def walk_what_runs(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from walk_what_runs(node)


def name_inside(module: str) -> str:
    """Return the name of one of our modules without `bridgehead`; others, such as `mcp`, have none."""
    return module.removeprefix("bridgehead.") if module.startswith("bridgehead.") else ""


def find_circle(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        return list(circle.args[1])
    return []
