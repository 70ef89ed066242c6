"""`resources/read`: finding who reads a URI, and reading it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from .. import jsonrpc
from ..calls.call_hook import Invocation
from ..calls.context import Context
from ..calls.params import ReadResourceParams
from ..errors import ProtocolError
from ..features.content import BlobResource, TextResource, fit
from ..features.handlers import settle
from ..features.home import Home
from ..revisions import Revision
from ..server import Body, Server
from .listing import cache_hints


async def read_resource(server: Server, context: Context[Any], params: ReadResourceParams) -> Body:
    """Read a resource by its URI: a declared one, or the first template that fits."""
    home, read = _find_reader(server, context, params.uri)
    lifespan = server.enter_home(context, home)

    async def run() -> list[TextResource | BlobResource]:
        server.multi_round.resume(context, params, params.uri)
        await lifespan.entered()
        return await read(context)

    call = Invocation("resource", params.uri, context)
    contents = await (run() if home.call_hook is None else settle(home.call_hook(call, run)))
    fitting = [fit(item, context.revision) for item in contents]
    hints = cache_hints(server, server.bridge.read_ttl_ms) if context.revision.stateless else {}
    return jsonrpc.encode({"contents": fitting, **hints}), None


def _find_reader(
    server: Server, context: Context[Any], uri: str
) -> tuple[Home, Callable[[Context[Any]], Awaitable[list[TextResource | BlobResource]]]]:
    resource = server.bridge.resources.get(uri)
    if resource is not None:
        return resource.home, resource.read
    for template in server.bridge.templates.values():
        variables = template.uri.match(uri)
        if variables is not None:
            return template.home, partial(template.read, uri, variables)
    raise resource_not_found(uri, context.revision)


def resource_not_found(uri: str, revision: Revision) -> ProtocolError:
    """Refuse a URI under which there is nothing, with the code that the revision gives it."""
    return ProtocolError(revision.missing_resource_code, f"Resource not found: {uri}", {"uri": uri})
