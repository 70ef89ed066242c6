"""How far a reader has to jump: lines, helpers used once, the longest chain of imports, comments.

    python -m bench.tree [ROOT]

`ROOT` is a checkout of this project (by default this one).
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from bench.table import draw

_COMMENT = re.compile(r"\s*# (?!---|===|noqa|type:|pragma|ruff)")


def main() -> int:
    """Print the measures of a tree."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1])
    source = root / "src" / "bridgehead"
    files = sorted(source.rglob("*.py"))
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    trees = {file: ast.parse(text) for file, text in texts.items()}

    rows = [["package", "modules", "lines"]]
    packages = Counter[str]()
    modules = Counter[str]()
    for file, text in texts.items():
        package = file.relative_to(source).parts[0]
        packages[package] += text.count("\n")
        modules[package] += 1
    rows += [[name, str(modules[name]), f"{lines:,}"] for name, lines in sorted(packages.items())]
    tests = sum(file.read_text(encoding="utf-8").count("\n") for file in (root / "tests").rglob("*.py"))
    rows += [["src", str(len(files)), f"{sum(packages.values()):,}"], ["tests", "", f"{tests:,}"]]
    print(draw(rows), "\n")

    functions, once = count_functions(trees.values())
    chain = longest_chain(trees, source)
    comments = sum(bool(_COMMENT.match(line)) for text in texts.values() for line in text.splitlines())
    lines = sum(packages.values())
    print(f"private functions used once in their module: {once} of {functions} ({once / functions:.1%})")
    print(f"longest chain of module-level imports: {len(chain)} ({' → '.join(chain)})")
    print(f"comments on a line of their own: {comments} ({comments / lines:.2%})")
    return 0


def count_functions(trees: Iterable[ast.Module]) -> tuple[int, int]:
    """Return how many functions there are, and how many are private, unique and used once."""
    total = single = 0
    for tree in trees:
        nodes = list(ast.walk(tree))
        defined = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        uses = Counter(
            node.attr if isinstance(node, ast.Attribute) else node.id
            for node in nodes
            if isinstance(node, ast.Attribute | ast.Name)
        )
        names = Counter(node.name for node in defined)
        total += len(defined)
        single += sum(
            node.name.startswith("_")
            and not node.name.startswith("__")
            and names[node.name] == uses[node.name] == 1
            for node in defined
        )
    return total, single


def longest_chain(trees: dict[Path, ast.Module], source: Path) -> list[str]:
    """Return the longest chain of modules that import each other when they are loaded."""
    names = {file: ".".join(file.relative_to(source).with_suffix("").parts) for file in trees}
    modules = {name.removesuffix(".__init__"): file for file, name in names.items()}

    def imported(name: str) -> set[str]:
        file = modules[name]
        package = list(file.relative_to(source).parent.parts)
        found: set[str] = set()
        for node in trees[file].body:  # not inside functions, nor `if TYPE_CHECKING`
            if isinstance(node, ast.ImportFrom):
                start = package[: len(package) + 1 - node.level] if node.level else []
                words = (node.module or "").split(".") if node.module else []
                if not node.level and words[:1] != ["bridgehead"]:
                    continue
                base = ".".join([*start, *(words if node.level else words[1:])])
                for alias in node.names:
                    inner = f"{base}.{alias.name}".strip(".")
                    found.add(inner if inner in modules else base)
        return {one for one in found if one in modules and one != name}

    @cache
    def chain(name: str) -> list[str]:
        longest: list[str] = []
        for one in imported(name):
            longest = max(longest, chain(one), key=len)
        return [name, *longest]

    return max((chain(name) for name in modules), key=len)


if __name__ == "__main__":
    sys.exit(main())
