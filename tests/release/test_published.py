"""Published: a release writes the address of its repository, and cannot be made without one."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hatch_build
from release import published
from release.dist import ROOT

ADDRESS = "https://github.com/someone/bridgehead"


@pytest.mark.parametrize(
    "address", ["", "github.com/someone/bridgehead", "https://github.com/someone", "http://github.com/a/b"]
)
def test_a_release_without_the_address_of_a_repository_fails_and_says_how_to_give_one(address: str) -> None:
    with pytest.raises(SystemExit, match="make dist ARGS='--address https://"):
        published.check_address(address)


def test_dist_asks_for_the_address_before_it_builds_anything(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "release", "dist", "--into", str(tmp_path / "dist")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr.strip()) == (1, published.MISSING)
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize(
    ("address", "namespace"),
    [(ADDRESS, "io.github.someone"), ("https://git.example.org/team/bridgehead", "org.example.git.team")],
)
def test_the_registrys_names_are_those_of_the_repositorys_owner(address: str, namespace: str) -> None:
    assert published.namespace(address) == namespace


@pytest.mark.parametrize(
    ("link", "leads_to"),
    [
        ("[a](docs/aoc.md#bench)", f"[a]({ADDRESS}/blob/main/docs/aoc.md#bench)"),
        ("![a](docs/images/demo.svg)", f"![a]({ADDRESS}/raw/main/docs/images/demo.svg)"),
        ('<img src="docs/images/a.png">', f'<img src="{ADDRESS}/raw/main/docs/images/a.png">'),
        ("[a](https://example.com/b)", "[a](https://example.com/b)"),
        ("[a](#use-it)", "[a](#use-it)"),
    ],
)
def test_a_relative_link_leads_to_the_repository(link: str, leads_to: str) -> None:
    assert hatch_build.index_page(link, ADDRESS) == leads_to


@pytest.mark.parametrize(
    ("link", "left"),
    [
        ("see [a page](docs/aoc.md#bench).", "see a page."),
        ("one\n\n![a](docs/images/demo.svg)\n\ntwo", "one\n\ntwo"),
        ('<picture><source srcset="docs/a.svg"><img alt="a" src="docs/b.svg"></picture>\n\ntwo', "two"),
        ("[a](https://example.com/b)", "[a](https://example.com/b)"),
        ("[a](#use-it)", "[a](#use-it)"),
    ],
)
def test_without_an_address_a_link_becomes_its_text_and_a_picture_goes(link: str, left: str) -> None:
    assert hatch_build.index_page(link) == left


def test_the_page_of_the_index_installs_from_there_and_leads_nowhere_that_is_not() -> None:
    page = hatch_build.index_page((ROOT / "README.md").read_text(encoding="utf-8"))

    assert hatch_build.INSTALL in page
    assert "make install" not in page.partition("\n## ")[0]
    assert re.findall(r"\]\((?!https?:|#)|src(?:set)?=", page) == []
    assert "bridgehead doctor" in page


def test_what_is_built_has_absolute_links_addresses_and_the_registrys_names(tmp_path: Path) -> None:
    published.write_source(ROOT, tmp_path, f"{ADDRESS}", ["aoc", "mercury"])

    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    readme = hatch_build.index_page(text, ADDRESS)
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "](docs/" not in readme
    assert f"]({ADDRESS}/blob/main/docs/first-bridge.md)" in readme
    assert f'src="{ADDRESS}/raw/main/docs/images/bench-light.svg"' in readme
    assert readme.splitlines()[-2:] == [
        f"<!-- mcp-name: io.github.someone/bridgehead-{name} -->" for name in ("aoc", "mercury")
    ]
    assert project["urls"]["Homepage"] == ADDRESS
    assert all(address.startswith(ADDRESS) for address in project["urls"].values())
    assert (tmp_path / "src/bridgehead/py.typed").exists()
