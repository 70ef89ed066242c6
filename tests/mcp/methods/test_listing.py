"""Pagination: every list can be walked to its end, and a cursor is only what a page gave."""

from itertools import chain
from typing import Any

import pytest

from bridgehead.mcp import Arguments, Bridge, Context, NoArguments
from bridgehead.mcp.revisions import REVISIONS, V2025_11_25, Revision
from tests.support.checked import STATELESS, CheckedClient, connect

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


class Nothing(Arguments):
    pass


def make(count: int, page_size: int) -> Bridge[None]:
    bridge: Bridge[None] = Bridge("pages", "1", page_size=page_size, list_ttl_ms=5)

    def answer(args: NoArguments, ctx: Context[None]) -> str:
        return "x"

    def read(ctx: Context[None]) -> str:
        return "x"

    def read_template(variables: dict[str, str], ctx: Context[None]) -> str:
        return "x"

    for number in range(count):
        name = f"n{number:03}"
        bridge.tool("Answer.", name=name)(answer)
        bridge.prompt("Ask.", name=name)(answer)
        bridge.resource(f"p://{name}", name=name)(read)
        bridge.template(f"p://{name}/{{x}}", name=name)(read_template)
    return bridge


async def walk(client: CheckedClient, method: str) -> list[list[str]]:
    pages, params = [], None
    while True:
        result = await client.request(method, params)
        pages.append([item["name"] for item in result[LISTS[method]]])
        if "nextCursor" not in result:
            return pages
        params = {"cursor": result["nextCursor"]}


@pytest.mark.parametrize("revision", [V2025_11_25, STATELESS], ids=str)
@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize(
    ("count", "size", "lengths"),
    [(7, 3, [3, 3, 1]), (6, 3, [3, 3]), (3, 3, [3]), (1, 3, [1]), (40, 1, [1] * 40)],
)
async def test_walking_all_pages_gives_every_item_once_and_in_order(
    revision: Revision, method: str, count: int, size: int, lengths: list[int]
) -> None:
    async with connect(make(count, size), revision=revision) as client:
        pages = await walk(client, method)

    assert [len(page) for page in pages] == lengths
    assert list(chain.from_iterable(pages)) == [f"n{number:03}" for number in range(count)]


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize(
    "cursor", ["", "p", "3", "p-1", "p 3", "p0x3", "p1_0", "px", "P3", "p3\n", "p٣", "p" + "f" * 9999]
)
async def test_a_cursor_that_no_page_gave_is_refused(method: str, cursor: str) -> None:
    async with connect(make(7, 3)) as client:
        error = await client.error(method, {"cursor": cursor})

    assert error["code"] == -32602
    assert "nextCursor" in error["message"]


@pytest.mark.parametrize("cursor", [5, [], {}, True])
async def test_a_cursor_of_the_wrong_type_is_refused_with_its_place(cursor: Any) -> None:
    async with connect(make(7, 3)) as client:
        error = await client.error("tools/list", {"cursor": cursor})

    assert error["code"] == -32602
    assert "cursor must be a string or null (got " in error["message"]


async def test_a_cursor_that_is_null_means_the_first_page() -> None:
    async with connect(make(7, 3)) as client:
        assert (await client.request("tools/list", {"cursor": None}))["tools"][0]["name"] == "n000"


@pytest.mark.parametrize("revision", REVISIONS.values(), ids=str)
async def test_only_a_stateless_client_is_told_how_long_a_list_keeps(revision: Revision) -> None:
    async with connect(make(1, 3), revision=revision) as client:
        for method in LISTS:
            result = await client.request(method)

            assert (result.get("ttlMs") == 5) == revision.stateless
            assert (result.get("cacheScope") == "private") == revision.stateless


@pytest.mark.parametrize("method", LISTS)
async def test_a_list_is_the_same_each_time_it_is_asked_for(method: str) -> None:
    async with connect(make(4, 3)) as client:
        assert await walk(client, method) == await walk(client, method)


async def test_a_tool_that_is_added_later_is_listed_once_the_change_is_announced() -> None:
    bridge = make(1, 3)
    async with connect(bridge) as client:
        assert len((await client.request("tools/list"))["tools"]) == 1

        @bridge.tool("Come late.")
        def late(args: Nothing, ctx: Context[None]) -> str:
            return "late"

        bridge.changed.tools()

        assert [tool["name"] for tool in (await client.request("tools/list"))["tools"]] == ["n000", "late"]


async def test_asking_for_many_pages_does_not_fill_the_servers_bodies() -> None:
    async with connect(make(4, 2)) as client:
        for number in range(300):
            await client.answer_to("tools/list", {"cursor": f"p{number:x}"})

        assert len(client.dispatcher._bodies) <= 2 * len(REVISIONS)  # noqa: SLF001  (no other way to see it)
