"""Published: a release writes the address of its repository, and cannot be made without one."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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
    assert published.absolute(link, ADDRESS) == leads_to


def test_what_is_built_has_absolute_links_addresses_and_the_registrys_names(tmp_path: Path) -> None:
    published.write_source(ROOT, tmp_path, f"{ADDRESS}", ["aoc", "mercury"])

    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
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
