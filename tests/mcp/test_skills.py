"""Skills: what a folder needs to be one, and how the head of its SKILL.md is read."""

from pathlib import Path

import pytest
import yaml

from bridgehead.mcp import Bridge, DeclarationError, add_skill
from bridgehead.mcp.skills import read_frontmatter

HEAD = """\
---
name: brew-tea
description: "Brew tea: green, black or white"
license: Apache-2.0
metadata:
  version: '2.1'
  by: the tea room
# a comment
---

# Brewing
Read [times](references/times.md).
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A skill of one file."""
    root = tmp_path / "brew-tea"
    root.mkdir()
    (root / "SKILL.md").write_text(HEAD, encoding="utf-8")
    return root


def room(*folders: Path) -> Bridge[None]:
    bridge: Bridge[None] = Bridge("room", "1")
    for folder in folders:
        add_skill(bridge, folder)
    return bridge


def test_two_skills_at_one_uri_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="declared twice"):
        room(folder, folder)


@pytest.mark.parametrize(
    "head",
    [
        HEAD,
        "---\nname: a\ndescription: Plain text, with commas; and a (bracket)\n---",
        "---\r\nname: a\r\ndescription: It's fine\r\n---\r\n",
        "---\nname: a\ndescription: 'It''s: fine'\n---",
        '---\nname: a\ndescription: "caf\\u00e9 \\"x\\" #1"\n---',
        "---\n\nname:   a  \ndescription: x # y\nmetadata:\n    io.example/key: v-1\n---".replace(" # y", ""),
    ],
)
def test_the_head_of_a_skill_is_read_as_a_yaml_parser_reads_it(head: str) -> None:
    body = head.replace("\r\n", "\n").split("---\n")[1].removesuffix("---")

    assert read_frontmatter(head.encode(), Path("SKILL.md")) == yaml.safe_load(body)


@pytest.mark.parametrize(
    "line",
    [
        *(
            "x: 1",
            "x: 1.0",
            "x: true",
            "x: No",
            "x: ~",
            "x: null",
            "x: 2026-01-01",
            "x: 1:30",
            "x: .5",
            "x: -1",
        ),
        *("x: [a]", "x: {a: b}", "x: |", "x: > folded", "x: &a b", "x: *a", "x: !t b", "x: @a", "x: `a`"),
        *(
            "x: a: b",
            "x: a #b",
            "x: 'a' b",
            'x: "a" # b',
            "x: 'a",
            "x: a:",
            "x:",
            "- x",
            "  x: y",
            "x",
            "x:y",
        ),
        *("x:\n  y:\n    z: a", "x:\n  y: a\n   z: b", "x:\n\ty: a", "name: b", "? x", '"x": y'),
    ],
)
def test_what_parsers_may_read_differently_is_refused(line: str) -> None:
    head = f"---\nname: a\ndescription: b\n{line}\n---\n"
    with pytest.raises(DeclarationError, match=r"SKILL\.md"):
        read_frontmatter(head.encode(), Path("SKILL.md"))


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("# Tea", "no front matter"),
        ("---\nname: a", "no front matter"),
        ("---\ndescription: b\n---", "needs a name"),
        ("---\nname: Tea\ndescription: b\n---", "needs a name"),
        ("---\nname: a--b\ndescription: b\n---", "needs a name"),
        ("---\nname: a\n---", "needs a description"),
        (f"---\nname: a\ndescription: {'b' * 1025}\n---", "needs a description"),
    ],
)
def test_a_skill_needs_a_name_and_a_description(head: str, expected: str) -> None:
    with pytest.raises(DeclarationError, match=expected):
        read_frontmatter(head.encode(), Path("SKILL.md"))


def test_a_folder_that_is_no_skill_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match=r"has no SKILL\.md"):
        room(tmp_path / "nothing")
    with pytest.raises(DeclarationError, match="Name the folder like the skill"):
        room(folder.rename(folder.parent / "tea"))


def test_a_skill_over_the_limits_is_refused(folder: Path) -> None:
    for number in range(512):
        (folder / f"{number}.txt").touch()
    with pytest.raises(DeclarationError, match="512 files and 16 MiB"):
        room(folder)
