"""Listing: tools, prompts, resources and templates, page by page, as the client's revision defines them."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

from .. import jsonrpc
from ..calls.context import Context
from ..calls.params import PageParams
from ..coroutines import settle
from ..errors import INVALID_PARAMS, ProtocolError, quote
from ..features.apps import shows_apps
from ..features.results import Body
from ..values.content import fit

if TYPE_CHECKING:
    from ..dispatch import Dispatcher

# A string, not a compiled pattern: compiling it would delay the first answer of every dispatcher.
_CURSOR = "p([0-9a-f]{1,8})"


def cache_hints(dispatcher: Dispatcher, ttl_ms: int) -> dict[str, Any]:
    """Return the members that tell a client of the stateless era how long it may keep a result."""
    return {"ttlMs": ttl_ms, "cacheScope": dispatcher.bridge.cache_scope}


def page(
    dispatcher: Dispatcher, context: Context[Any], name: str, items: list[Any], cursor: str | None
) -> Body:
    """Return one page of a list; the cursor is the offset of its first item."""
    page_size = dispatcher.bridge.page_size
    start = 0
    if cursor is not None:
        match = re.fullmatch(_CURSOR, cursor)
        start = int(match[1], 16) if match else len(items)
        if start >= len(items) or start % page_size:  # we hand out no such cursor
            message = f"Unknown cursor '{quote(cursor)}': use the nextCursor of the page before, or none"
            raise ProtocolError(INVALID_PARAMS, message)
    end = start + page_size
    body: dict[str, Any] = {name: items[start:end]}
    if end < len(items):
        body["nextCursor"] = f"p{end:x}"
    if context.revision.stateless:
        body |= cache_hints(dispatcher, dispatcher.bridge.list_ttl_ms)
    return jsonrpc.encode(body), None


def list_tools(dispatcher: Dispatcher, context: Context[Any], params: PageParams) -> Body:
    """List the tools in the order of their declaration; tools of apps only for hosts that show apps."""
    has_apps, is_contract = shows_apps(context.client), dispatcher.shows_contract(context.client)

    def list_page() -> Body:
        tools = [tool for tool in dispatcher.bridge.tools.values() if tool.is_contract or not is_contract]
        items = [tool.item(context.revision) for tool in tools if has_apps or tool.visible_to == "everyone"]
        return page(dispatcher, context, "tools", items, params.cursor)

    return dispatcher.reuse_body(
        ("tools", context.revision.name, has_apps, is_contract, params.cursor), list_page
    )


def list_prompts(dispatcher: Dispatcher, context: Context[Any], params: PageParams) -> Body:
    """List the prompts."""
    prompts = () if dispatcher.shows_contract(context.client) else dispatcher.bridge.prompts.values()
    items = [prompt.item(context.revision) for prompt in prompts]
    return page(dispatcher, context, "prompts", items, params.cursor)


def list_templates(dispatcher: Dispatcher, context: Context[Any], params: PageParams) -> Body:
    """List the resource templates."""
    items = [fit(template.item, context.revision) for template in dispatcher.bridge.templates.values()]
    return page(dispatcher, context, "resourceTemplates", items, params.cursor)


async def list_resources(dispatcher: Dispatcher, context: Context[Any], params: PageParams) -> Body:
    """List the declared resources and those of each bridge's lister."""
    has_apps = shows_apps(context.client)
    items = [
        resource.item
        for resource in dispatcher.bridge.resources.values()
        if context.revision.name != resource.bridge.contract_revision and (has_apps or not resource.is_app)
    ]
    for bridge, lister in dispatcher.bridge.listers.items():
        try:
            await dispatcher.switch_bridge(context, bridge).wait_until_entered()
            items += await settle(lister(context))
        except Exception as failure:
            # In a combined bridge, one far side that is down must not hide the resources of the others.
            if len(dispatcher.bridge.bridges) == 1:
                raise
            log = logging.getLogger("bridgehead.mcp")
            log.warning("the resources of %s are left out of the list: %s", bridge.info.name, failure)
    return page(
        dispatcher, context, "resources", [fit(item, context.revision) for item in items], params.cursor
    )
