"""Resources: fixed ones, templates, and lists made on the way."""

import base64
from typing import Any

import pytest

from bridgehead.mcp import Annotations, BlobResource, Bridge, Context, ResourceItem, TextResource
from bridgehead.mcp.revisions import HANDSHAKE, Revision
from tests.support.checked import STATELESS, connect

BYTES = bytes(range(256))

bridge: Bridge[None] = Bridge("library", "1", read_ttl_ms=1234, cache_scope="public")


@bridge.resource("lib://motto", name="motto", description="A line.", mime_type="text/plain", size=11)
def motto(ctx: Context[None]) -> str:
    return "Read more ü"


@bridge.resource("lib://cover", name="cover", mime_type="image/png")
async def cover(ctx: Context[None]) -> bytes:
    return BYTES


@bridge.resource("lib://set", name="set")
def both(ctx: Context[None]) -> list[TextResource | BlobResource]:
    return [
        TextResource(uri="lib://set/1", text="one"),
        BlobResource(uri="lib://set/2", mime_type="image/gif", blob="AAAA", meta={"a.example/m": 1}),
    ]


@bridge.template("lib://books/{author}/{title}", name="book", mime_type="text/plain")
def book(variables: dict[str, str], ctx: Context[None]) -> str:
    return f"{variables['title']} by {variables['author']}"


@bridge.template("lib://files/{+path}", name="file")
async def file(variables: dict[str, str], ctx: Context[None]) -> bytes:
    return variables["path"].encode()


async def read(client: Any, uri: str) -> list[Any]:
    contents: list[Any] = (await client.request("resources/read", {"uri": uri}))["contents"]
    return contents


async def test_text_is_read_with_its_uri_and_type() -> None:
    async with connect(bridge) as client:
        assert await read(client, "lib://motto") == [
            {"uri": "lib://motto", "text": "Read more ü", "mimeType": "text/plain"}
        ]


async def test_bytes_are_read_as_base64() -> None:
    async with connect(bridge) as client:
        (content,) = await read(client, "lib://cover")

    assert base64.b64decode(content["blob"], validate=True) == BYTES
    assert content["mimeType"] == "image/png"


async def test_contents_that_a_handler_made_itself_are_sent_as_they_are() -> None:
    async with connect(bridge) as client:
        assert await read(client, "lib://set") == [
            {"uri": "lib://set/1", "text": "one"},
            {"uri": "lib://set/2", "blob": "AAAA", "mimeType": "image/gif", "_meta": {"a.example/m": 1}},
        ]


async def test_a_template_reads_what_its_variables_name() -> None:
    async with connect(bridge) as client:
        (content,) = await read(client, "lib://books/Ada%20L/Notes")
        (deep,) = await read(client, "lib://files/a/b/c.txt")

    assert content == {"uri": "lib://books/Ada%20L/Notes", "text": "Notes by Ada L", "mimeType": "text/plain"}
    assert base64.b64decode(deep["blob"]) == b"a/b/c.txt"


@pytest.mark.parametrize("revision", HANDSHAKE.values(), ids=str)
@pytest.mark.parametrize("uri", ["lib://nothing", "lib://books/only-author", "", "not a uri"])
async def test_a_missing_resource_has_its_own_code_in_the_handshake_era(revision: Revision, uri: str) -> None:
    async with connect(bridge, revision=revision) as client:
        error = await client.error("resources/read", {"uri": uri})

    assert (error["code"], error["data"]) == (-32002, {"uri": uri})


async def test_a_missing_resource_is_a_wrong_parameter_in_the_stateless_era() -> None:
    async with connect(bridge, revision=STATELESS) as client:
        error = await client.error("resources/read", {"uri": "lib://nothing"})

    assert (error["code"], error["data"]) == (-32602, {"uri": "lib://nothing"})


async def test_a_stateless_client_is_told_how_long_it_may_keep_what_it_read() -> None:
    async with connect(bridge, revision=STATELESS) as client:
        result = await client.request("resources/read", {"uri": "lib://motto"})

    assert (result["ttlMs"], result["cacheScope"]) == (1234, "public")


async def test_declared_resources_and_templates_are_listed() -> None:
    async with connect(bridge) as client:
        resources = (await client.request("resources/list"))["resources"]
        templates = (await client.request("resources/templates/list"))["resourceTemplates"]

    assert resources[0] == {
        "uri": "lib://motto",
        "name": "motto",
        "description": "A line.",
        "mimeType": "text/plain",
        "size": 11,
    }
    assert [item["uri"] for item in resources] == ["lib://motto", "lib://cover", "lib://set"]
    assert templates[0] == {
        "uriTemplate": "lib://books/{author}/{title}",
        "name": "book",
        "mimeType": "text/plain",
    }


@pytest.mark.parametrize("when", ["at once", "later"])
async def test_a_bridge_can_list_what_it_finds(when: str) -> None:
    shelf: Bridge[None] = Bridge("shelf", "1")
    found = [
        ResourceItem("lib://new", "new", annotations=Annotations(("user",), 0.5, "2025-01-01T00:00:00Z"))
    ]

    def listed(ctx: Context[None]) -> list[ResourceItem]:
        return found

    async def listed_later(ctx: Context[None]) -> list[ResourceItem]:
        return found

    shelf.resource_list(listed_later if when == "later" else listed)
    async with connect(shelf) as client:
        assert "resources" in client.sent[0]["result"]["capabilities"]
        assert (await client.request("resources/list"))["resources"] == [
            {
                "uri": "lib://new",
                "name": "new",
                "annotations": {
                    "audience": ["user"],
                    "priority": 0.5,
                    "lastModified": "2025-01-01T00:00:00Z",
                },
            }
        ]
        assert (await client.request("resources/templates/list"))["resourceTemplates"] == []


async def test_the_first_template_that_fits_is_read() -> None:
    twice: Bridge[None] = Bridge("twice", "1")

    @twice.template("t://{name}", name="first")
    def first(variables: dict[str, str], ctx: Context[None]) -> str:
        return "first"

    @twice.template("t://{+path}", name="second")
    def second(variables: dict[str, str], ctx: Context[None]) -> str:
        return "second"

    async with connect(twice) as client:
        assert (await read(client, "t://a"))[0]["text"] == "first"
        assert (await read(client, "t://a/b"))[0]["text"] == "second"


async def test_what_is_said_of_a_resource_is_listed_and_goes_with_its_contents() -> None:
    page: Bridge[None] = Bridge("page", "1")
    meta = {"ui": {"prefersBorder": True}}

    @page.resource("ui://page", name="page", mime_type="text/html", meta=meta)
    def text(ctx: Context[None]) -> str:
        return "<p>"

    @page.template("ui://pictures/{name}", name="picture", meta=meta)
    def picture(variables: dict[str, str], ctx: Context[None]) -> bytes:
        return b"\x00"

    async with connect(page) as client, connect(page, revision=HANDSHAKE["2025-03-26"]) as older:
        (listed,) = (await client.request("resources/list"))["resources"]
        (template,) = (await client.request("resources/templates/list"))["resourceTemplates"]
        contents = [*await read(client, "ui://page"), *await read(client, "ui://pictures/x")]
        (unlabelled,) = await read(older, "ui://page")

    assert [said["_meta"] for said in (listed, template, *contents)] == [meta] * 4
    assert "_meta" not in unlabelled


async def test_a_resource_without_a_context_is_read_too() -> None:
    plain: Bridge[None] = Bridge("plain", "1")

    @plain.resource("plain://rules", name="Rules")
    def rules() -> str:
        return "Be kind."

    async with connect(plain) as client:
        read = await client.request("resources/read", {"uri": "plain://rules"})

    assert read["contents"][0]["text"] == "Be kind."
