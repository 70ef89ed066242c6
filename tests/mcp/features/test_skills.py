"""Skills: a host lists them, reads their files, and finds every digest right."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from bridgehead.mcp import Bridge, DeclarationError, add_skill, combine, in_memory, restrict
from bridgehead.mcp.features.skills import read_frontmatter
from bridgehead.mcp.revisions import V2025_11_25, V2026_07_28
from tests.support.checked import connect

EXTENSION = "io.modelcontextprotocol/skills"
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
    """A skill with a reference, a picture, and a file that is nobody's business."""
    root = tmp_path / "brew-tea"
    (root / "references").mkdir(parents=True)
    (root / "SKILL.md").write_bytes(HEAD.encode())
    (root / "references" / "times & more.md").write_bytes("Green: 2 min, schön\r\n".encode())
    (root / "leaf.png").write_bytes(b"\x89PNG\xff")
    (root / ".DS_Store").write_bytes(b"x")
    return root


def room(*folders: Path, **options: Any) -> Bridge[None]:
    bridge: Bridge[None] = Bridge("room", "1")
    for folder in folders:
        add_skill(bridge, folder, **options)
    return bridge


async def test_a_host_lists_a_skill_and_can_read_and_verify_every_file_of_it(folder: Path) -> None:
    # Plain: the official types do not know the extension. The conformance suite judges the answers' form.
    async with in_memory.connect(room(folder), revision=V2026_07_28) as client:
        found = await client.request("server/discover")
        listed = await client.request("skills/list")
        (skill,) = listed["skills"]
        got = await client.request("skills/get", {"uri": skill["uri"]})
        contents = {
            one["uri"]: (await client.request("resources/read", {"uri": one["uri"]}))["contents"][0]
            for one in skill["resources"]
        }

    assert found["capabilities"]["extensions"] == {EXTENSION: {}}
    assert "resources" in found["capabilities"]
    assert (listed["resultType"], listed["cacheScope"], listed["ttlMs"]) == ("complete", "private", 60_000)
    assert skill["uri"] == "skill://brew-tea/SKILL.md"
    assert skill["frontmatter"] == {
        "name": "brew-tea",
        "description": "Brew tea: green, black or white",
        "license": "Apache-2.0",
        "metadata": {"version": "2.1", "by": "the tea room"},
    }
    assert got["skill"] == skill
    assert (got["ttlMs"], got["cacheScope"]) == (60_000, "private")
    assert sorted(contents) == [
        "skill://brew-tea/SKILL.md",
        "skill://brew-tea/leaf.png",
        "skill://brew-tea/references/times%20%26%20more.md",
    ]
    for one in skill["resources"]:
        content = contents[one["uri"]]
        data = content["text"].encode() if "text" in content else base64.b64decode(content["blob"])
        assert (one["size"], one["digest"]) == (len(data), f"sha256:{hashlib.sha256(data).hexdigest()}")
    assert contents[skill["uri"]]["mimeType"] == "text/markdown"


async def test_a_uri_that_is_no_skill_is_invalid_and_the_answer_names_those_that_are(folder: Path) -> None:
    async with connect(room(folder), revision=V2026_07_28) as client:
        error = await client.error("skills/get", {"uri": "skill://brew-tea/leaf.png"})

    assert error["code"] == -32602
    assert error["message"] == "No skill is served at skill://brew-tea/leaf.png"
    assert error["data"] == {"skills": ["skill://brew-tea/SKILL.md"]}


async def test_a_bridge_without_skills_and_an_older_client_have_no_such_method(folder: Path) -> None:
    async with connect(room(), revision=V2026_07_28) as client:
        without = await client.error("skills/list")
    async with connect(room(folder), revision=V2025_11_25) as client:
        older = await client.error("skills/list")
        resources = await client.request("resources/list")

    assert without["code"] == older["code"] == -32601
    assert "extensions" not in client.sent[0]["result"]["capabilities"]
    # The files are ordinary resources, for everyone.
    assert {"uri": "skill://brew-tea/SKILL.md", "name": "brew-tea"}.items() <= resources["resources"][
        0
    ].items()


async def test_combined_and_restricted_bridges_serve_the_skills_of_their_parts(folder: Path) -> None:
    other = folder.parent / "eat-cake"
    other.mkdir()
    (other / "SKILL.md").write_text("---\nname: eat-cake\ndescription: Eat it\n---\n")
    view = restrict(combine("all", "1", [room(folder), room(other, under="acme/food")]), lambda _tool: True)
    async with in_memory.connect(view, revision=V2026_07_28) as client:
        listed = await client.request("skills/list")

    assert [skill["uri"] for skill in listed["skills"]] == [
        "skill://brew-tea/SKILL.md",
        "skill://acme/food/eat-cake/SKILL.md",
    ]


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
    for number in range(510):
        (folder / f"{number}.txt").touch()
    with pytest.raises(DeclarationError, match="512 files and 16 MiB"):
        room(folder)
