"""The website of the documents: links that work there, every page in its menu, nothing asked of another site.

`make site` builds it, in CI too; what it is put together from is tested here, without the generator.
"""

from pathlib import Path

import pytest
import yaml

from bridgehead import __version__
from docs import site

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("folder", "link", "leads_to"),
    [
        ("docs", "setup.md#uvx", "setup.md#uvx"),
        ("docs", "images/demo.svg", "images/demo.svg"),
        ("docs", "../ARCHITECTURE.md", "architecture.md"),
        ("docs", "../bench/aoc/RESULTS.md", "files/bench/aoc/RESULTS.md.txt"),
        (".", "docs/engine.md#tools", "engine.md#tools"),
        (".", "CONTRIBUTING.md", "contributing.md"),
        (".", "LICENSE", "files/LICENSE.txt"),
        (".", "https://example.com/a.md", "https://example.com/a.md"),
        (".", "#words", "#words"),
    ],
)
def test_a_link_leads_to_a_page_or_to_a_copied_file(folder: str, link: str, leads_to: str) -> None:
    assert site.relinked(f"[text]({link})", folder) == f"[text]({leads_to})"


def test_every_file_that_a_page_links_to_is_copied(tmp_path: Path) -> None:
    site.gather(tmp_path)
    linked = {
        link[1]
        for page in tmp_path.glob("*.md")
        for link in site.LINK.finditer(page.read_text(encoding="utf-8"))
        if link[1].startswith("files/")
    }

    assert linked
    assert [link for link in linked if not (tmp_path / link).read_text(encoding="utf-8")] == []


def test_the_menu_has_every_page_once(tmp_path: Path) -> None:
    site.gather(tmp_path / "pages")
    menu = yaml.safe_load((ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    named = [page for part in menu for pages in part.values() for page in pages_of(pages)]

    assert sorted(named) == sorted(path.name for path in (tmp_path / "pages").glob("*.md"))


def pages_of(entry: str | list[dict[str, str]]) -> list[str]:
    return [entry] if isinstance(entry, str) else [page for one in entry for page in one.values()]


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example.com/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.com/css">',
        '<img alt="x" src="https://example.com/a.png">',
    ],
)
def test_what_a_page_would_load_from_another_site_is_noticed(html: str, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(html, encoding="utf-8")

    [found] = site.outside_requests(tmp_path)

    assert "example.com" in found


def test_a_link_to_another_site_is_no_request(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<a href="https://example.com">x</a>', encoding="utf-8")

    assert list(site.outside_requests(tmp_path)) == []


def test_the_version_is_read_from_the_package() -> None:
    assert site.read_version() == __version__
    assert "VERSION" in (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")
