"""Site: puts the pages of the project together and makes a website of them: `make site`.

Pages of the root become pages of the site, and other files that a page links to are copied as text. Needs
only what requirements/site.txt locks; a broken link, a page that the menu lacks or a request to another
site fails it.
"""

import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SITE = ROOT / "build" / "site"
FILES = "files"
ROOT_PAGES = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?(?=\))")
OUTSIDE = re.compile(
    r"<(?:script|img|source|iframe|link rel=\"?(?:stylesheet|icon|preconnect|preload)\"?)\b"
    r"[^>]*(?:src|srcset|href)=[\"']?((?:https?:)?//[^\"' >]+)"
)


def gather(target: Path) -> None:
    """Copy every page and picture into one folder, with links that work there."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(DOCS / "images", target / "images")
    for name in ("logo.svg", "site.css", "site.js"):
        shutil.copy(DOCS / name, target)
    sources = [*DOCS.glob("*.md"), *(ROOT / name for name in ROOT_PAGES)]
    for source in sources:
        text = relinked(source.read_text(encoding="utf-8"), source.parent.relative_to(ROOT).as_posix())
        (target / page_name(source)).write_text(text, encoding="utf-8")
        for path in re.findall(rf"\]\({FILES}/([^)#]+)\.txt", text):
            copied = target / FILES / f"{path}.txt"
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_text(read_file(ROOT / path), encoding="utf-8")


def read_file(path: Path) -> str:
    """Return the text of a file; of a folder, that of each file in it under its name."""
    if path.is_file():
        return path.read_text(encoding="utf-8")
    return "\n".join(
        f"# {file.name}\n\n{file.read_text(encoding='utf-8')}" for file in sorted(path.iterdir())
    )


def read_version() -> str:
    """Return the version of the project, which is not installed where this runs."""
    source = (ROOT / "src" / "bridgehead" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'__version__ = "(.+)"', source)
    assert found is not None, "src/bridgehead/__init__.py has no __version__"  # noqa: S101
    return found[1]


def page_name(source: Path) -> str:
    """Return what a page is called in the site."""
    return source.name.lower() if source.name in ROOT_PAGES else source.name


def relinked(text: str, folder: str) -> str:
    """Rewrite the links of a page of this folder: to a page of the site, or to a copied file."""

    def replace(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, found[1]))
        anchor = found[2] or ""
        if path in ROOT_PAGES:
            return path.lower() + anchor
        inside = path.removeprefix("docs/")
        is_page = inside != path and inside.endswith((".md", ".svg", ".png"))
        return inside + anchor if is_page else f"{FILES}/{path}.txt"

    return LINK.sub(replace, text)


def outside_requests(folder: Path) -> Iterator[str]:
    """Name what a page would load from another site."""
    for page in sorted(folder.rglob("*.html")):
        for found in OUTSIDE.finditer(page.read_text(encoding="utf-8")):
            yield f"{page.relative_to(folder)}: {found[1]}"


def main() -> int:
    """Make the site and say where it is."""
    gather(SITE / "pages")
    configuration = (DOCS / "mkdocs.yml").read_text(encoding="utf-8").replace("VERSION", read_version())
    (SITE / "mkdocs.yml").write_text(configuration, encoding="utf-8")
    made = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean"], cwd=SITE, check=False
    )
    if made.returncode:
        return 1
    requests = list(outside_requests(SITE / "html"))
    print(*requests, sep="\n", end="\n" if requests else "")
    if requests:
        return 1
    print(f"{(SITE / 'html' / 'index.html').relative_to(ROOT)} is the site.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
