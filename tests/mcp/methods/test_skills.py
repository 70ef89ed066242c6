"""`skills/list` and `skills/get`: a host lists skills, reads their files, and finds every digest right."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mcp import Bridge, add_skill, combine, in_memory, restrict
from bridgehead.mcp.revisions import V2025_11_25, V2026_07_28
from tests.mcp.test_skills import HEAD
from tests.support.checked import connect

EXTENSION = "io.modelcontextprotocol/skills"


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
    assert (listed["resultType"], listed["cacheScope"], listed["ttlMs"]) == ("complete", "private", 0)
    assert skill["uri"] == "skill://brew-tea/SKILL.md"
    assert skill["frontmatter"] == {
        "name": "brew-tea",
        "description": "Brew tea: green, black or white",
        "license": "Apache-2.0",
        "metadata": {"version": "2.1", "by": "the tea room"},
    }
    assert got["skill"] == skill
    assert (got["ttlMs"], got["cacheScope"]) == (0, "private")
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
    listed = {one["uri"]: one["name"] for one in resources["resources"]}
    assert listed["skill://brew-tea/SKILL.md"] == "brew-tea"


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
