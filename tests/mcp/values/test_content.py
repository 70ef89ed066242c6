"""Content by revision: a client sees no field or block that its revision does not define, and misses none.

The table says, for each message, which places every revision has and which came with a later one. The bridge
fills all of them, so what a client sees must be exactly its revision's part.
"""

from typing import Any

import pytest

from bridgehead.mcp.calls.params import META_PREFIX
from bridgehead.mcp.revisions import HANDSHAKE, REVISIONS, Revision
from tests.support.asking import ALL, Person
from tests.support.checked import STATELESS, connect
from tests.support.full_bridge import BLOCKS, make_bridge
from tests.support.revisions import paths

BLOCK = "type text data mimeType annotations annotations.audience annotations.audience[] annotations.priority"
EMBEDDED = "resource resource.uri resource.text resource.blob resource.mimeType"
KINDS = ":text :image :resource"
NEW_BLOCK = "_meta annotations.lastModified resource._meta"
LINK = ":resource_link uri name title description size"
ICONS = "icons icons[] icons[].src icons[].mimeType icons[].sizes icons[].sizes[] icons[].theme"
LISTED = "name description"

RESULTS: dict[tuple[str, str], dict[str, str]] = {
    ("initialize", ""): {
        "2024-11-05": "protocolVersion capabilities serverInfo instructions",
        "2026-07-28": "-",
    },
    ("initialize", "serverInfo"): {
        "2024-11-05": "name version",
        "2025-06-18": "title",
        "2025-11-25": f"description websiteUrl {ICONS}",
        "2026-07-28": "-",
    },
    ("initialize", "capabilities"): {
        "2024-11-05": "logging prompts prompts.listChanged resources resources.listChanged "
        "resources.subscribe tools tools.listChanged",
        "2025-03-26": "completions",
        "2026-07-28": "-",
    },
    ("tools/list", "tools[]"): {
        "2024-11-05": f"{LISTED} inputSchema",
        "2025-03-26": "annotations annotations.readOnlyHint annotations.destructiveHint "
        "annotations.idempotentHint annotations.openWorldHint",
        "2025-06-18": "title outputSchema _meta",
        "2025-11-25": ICONS,
    },
    ("resources/list", "resources[]"): {
        "2024-11-05": f"{LISTED} uri mimeType size annotations annotations.audience annotations.audience[] "
        "annotations.priority",
        "2025-06-18": "title _meta annotations.lastModified",
        "2025-11-25": ICONS,
    },
    ("resources/templates/list", "resourceTemplates[]"): {
        "2024-11-05": f"{LISTED} uriTemplate mimeType",
        "2025-06-18": "title",
        "2025-11-25": ICONS,
    },
    ("prompts/list", "prompts[]"): {
        "2024-11-05": f"{LISTED} arguments arguments[] arguments[].name arguments[].description "
        "arguments[].required",
        "2025-06-18": "title",
        "2025-11-25": ICONS,
    },
    ("prompts/get", "messages[].content"): {
        "2024-11-05": f"{BLOCK} {EMBEDDED} {KINDS}",
        "2025-03-26": ":audio",
        "2025-06-18": f"{NEW_BLOCK} {LINK}",
        "2025-11-25": ICONS,
    },
    ("tools/call", ""): {
        "2024-11-05": "content content[] isError _meta",
        "2025-06-18": "structuredContent",
        "2026-07-28": "resultType",
    },
    ("tools/call", "content[]"): {
        "2024-11-05": f"{BLOCK} {EMBEDDED} {KINDS}",
        "2025-03-26": ":audio",
        "2025-06-18": f"{NEW_BLOCK} {LINK}",
        "2025-11-25": ICONS,
    },
    ("resources/read", "contents[]"): {
        "2024-11-05": "uri text blob mimeType",
        "2025-06-18": "_meta",
    },
    ("resources/read", ""): {
        "2024-11-05": "contents contents[]",
        "2026-07-28": "resultType _meta ttlMs cacheScope",
    },
    ("completion/complete", "completion"): {"2024-11-05": "values values[] total hasMore"},
}
PARAMS: dict[str, dict[str, Any]] = {
    "prompts/get": {"name": "say", "arguments": {"word": "x"}},
    "tools/call": {"name": "fail"},
    "resources/read": {"uri": "full://text"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "say"},
        "argument": {"name": "word", "value": "x"},
    },
}


MOVED = {("tools/list", "tools[]", "2025-03-26"): {"annotations.title"}}
"""What a revision has in a place of its own: the title of a tool stood among its hints at first."""


def expected(table: dict[str, str], revision: str) -> set[str]:
    return set(" ".join(fields for since, fields in table.items() if since <= revision).split())


def below(body: Any, root: str, *, deep: bool) -> set[str]:
    """Give the places below a root; at the top of a message only the first level."""
    found = {path[len(root) :].lstrip(".") for path in paths(body) if path.startswith(root) and path != root}
    return found if deep else {path for path in found if "." not in path}


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
@pytest.mark.parametrize(("method", "root"), RESULTS)
async def test_each_message_has_exactly_the_fields_of_its_revision(
    method: str, root: str, revision: Revision
) -> None:
    fields = expected(RESULTS[method, root], revision.name) | MOVED.get((method, root, revision.name), set())
    async with connect(make_bridge(), revision=revision) as client:
        if "-" in fields:
            assert (await client.error(method))["code"] == -32601
            return
        hello = {"protocolVersion": revision.name}
        result = await client.request(method, hello if method == "initialize" else PARAMS.get(method))

    shown = {path for path in below(result, root, deep=bool(root)) if root or ":" not in path}
    assert shown == fields


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
async def test_a_block_that_a_revision_does_not_know_is_told_in_words(revision: Revision) -> None:
    async with connect(make_bridge(), revision=revision) as client:
        content = (await client.call("blocks"))["content"]

    assert len(content) == len(BLOCKS)
    if not revision.audio:
        assert content[2] == {
            "type": "text",
            "text": "[audio, audio/wav: this client's protocol revision cannot carry it]",
        }
    if not revision.resource_links:
        assert content[5] == {"type": "text", "text": "Link: full://link"}


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
async def test_what_is_sent_along_the_way_has_exactly_the_fields_of_its_revision(revision: Revision) -> None:
    meta = {"progressToken": 1, META_PREFIX + "logLevel": "info"}
    async with connect(make_bridge(), revision=revision) as client:
        await client.call("make", {"word": "x"}, _meta=meta)
        (progress,) = client.notifications("notifications/progress")
        (message,) = client.notifications("notifications/message")

    told = {"message"} if revision.progress_messages else set()
    assert set(progress) == {"progressToken", "progress", "total"} | told
    assert set(message) == {"level", "data", "logger"}


@pytest.mark.parametrize("revision", HANDSHAKE.values(), ids=str)
async def test_a_question_to_the_model_has_only_what_its_revision_defines(revision: Revision) -> None:
    person = Person()
    async with connect(make_bridge(), revision=revision, capabilities=ALL, answering=person) as client:
        await client.call("think")

    assert len(person.asked[0][1]["messages"]) >= 4


async def test_a_stateless_server_names_itself_in_every_result() -> None:
    async with connect(make_bridge(), revision=STATELESS) as client:
        for method in ("server/discover", "tools/list", "prompts/list", "resources/list"):
            info = (await client.request(method))["_meta"][META_PREFIX + "serverInfo"]

            assert set(info) == {"name", "version", "title", "description", "websiteUrl", "icons"}


async def test_meta_of_an_answer_stands_beside_the_name_of_the_server() -> None:
    async with connect(make_bridge(), revision=STATELESS) as client:
        meta = (await client.call("fail"))["_meta"]

    assert set(meta) == {"a.example/meta", META_PREFIX + "serverInfo"}
