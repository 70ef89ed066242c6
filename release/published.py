"""Published: the project as a package index and the MCP registry need it, with the address of its repository.

Only a release knows that address, so only a release writes it: into the project's addresses, from which the
build makes the index's page (hatch_build.py), and into the registry's names.
"""

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

MISSING = (
    "A release needs the address of its repository: "
    "make dist ARGS='--address https://github.com/OWNER/REPOSITORY'"
)


def check_address(address: str) -> str:
    """Return the address without its last slash; exit if it cannot be one of a repository."""
    parts = urlsplit(address.rstrip("/"))
    # The path has three parts: /, owner and name.
    if not address or parts.scheme != "https" or len(PurePosixPath(parts.path).parts) != 3:
        raise SystemExit(f"{address!r} is not such an address. {MISSING}" if address else MISSING)
    return address.rstrip("/")


def namespace(address: str) -> str:
    """Return the owner's namespace in the MCP registry, such as io.github.owner."""
    parts = urlsplit(address)
    host = ".".join(reversed((parts.hostname or "").split(".")))
    # GitHub's owners have names under io.github there, although their repositories are on github.com.
    host = "io.github" if host == "com.github" else host
    return f"{host}.{PurePosixPath(parts.path).parts[1]}"


def write_source(root: Path, target: Path, address: str, bridges: Iterable[str]) -> None:
    """Copy the project's files, with names in the README and addresses in pyproject.toml."""
    for path in _files(root):
        copied = target / path.relative_to(root)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copied)
    readme, pyproject = target / "README.md", target / "pyproject.toml"
    # The registry looks for these lines in the package's page: they show that both have one owner.
    names = "".join(f"<!-- mcp-name: {namespace(address)}/bridgehead-{name} -->\n" for name in bridges)
    readme.write_text(f"{readme.read_text(encoding='utf-8')}\n{names}", encoding="utf-8", newline="\n")
    addresses = {
        "Homepage": address,
        "Documentation": f"{address}/tree/main/docs",
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }
    table = "".join(f'{name} = "{value}"\n' for name, value in addresses.items())
    project = pyproject.read_text(encoding="utf-8").replace(
        "[project.scripts]\n", f"[project.urls]\n{table}\n[project.scripts]\n", 1
    )
    pyproject.write_text(project, encoding="utf-8", newline="\n")


def _files(root: Path) -> Iterator[Path]:
    """Return the files of a checkout, or all of an unpacked source distribution."""
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        paths = [root / name for name in listed.split("\0") if name]
    else:
        paths = list(root.rglob("*"))
    return (path for path in paths if path.is_file())
