"""Resources: with a fixed URI, or by a URI template."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import field

from ..calls.context import Context
from ..coroutines import settle
from ..values.content import Annotations, BlobResource, Icon, TextResource, Wire
from .apps import UI_MIME_TYPE
from .bridge_base import BridgeBase
from .uri_template import UriTemplate

Contents = str | bytes | list[TextResource | BlobResource]


class ResourceItem(Wire, frozen=True):
    """A resource as it is listed."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    size: int | None = None
    icons: tuple[Icon, ...] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TemplateItem(Wire, frozen=True):
    """A resource template as it is listed."""

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class Resource:
    """One resource with a fixed URI."""

    def __init__(
        self,
        item: ResourceItem,
        read: Callable[[Context[Any]], Contents | Awaitable[Contents]],
        bridge: BridgeBase,
        ttl_ms: int | None = None,
    ) -> None:
        self.item = item
        self.bridge = bridge
        self.ttl_ms = ttl_ms
        """How long a client may keep the contents; None is the bridge's `read_ttl_ms`."""
        self._read = read

    @property
    def is_app(self) -> bool:
        """Whether it is an app's page, which is listed only for hosts that show apps."""
        return self.item.mime_type == UI_MIME_TYPE

    async def read(self, context: Context[Any]) -> list[TextResource | BlobResource]:
        """Read it."""
        return wrap_contents(self.item.uri, self.item, await settle(self._read(context)))


class Template:
    """Resources whose URIs follow a pattern."""

    def __init__(
        self,
        item: TemplateItem,
        read: Callable[[dict[str, str], Context[Any]], Contents | Awaitable[Contents]],
        bridge: BridgeBase,
    ) -> None:
        self.item = item
        self.bridge = bridge
        self.uri = UriTemplate(item.uri_template)
        self._read = read

    async def read(
        self, uri: str, variables: dict[str, str], context: Context[Any]
    ) -> list[TextResource | BlobResource]:
        """Read the resource with these variables."""
        return wrap_contents(uri, self.item, await settle(self._read(variables, context)))


def wrap_contents(
    uri: str, item: ResourceItem | TemplateItem, value: Contents
) -> list[TextResource | BlobResource]:
    """Wrap a reader's return value: text, bytes, or ready-made contents."""
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        return [TextResource(uri=uri, mime_type=item.mime_type, text=value, meta=item.meta)]

    encoded = base64.b64encode(value).decode()
    return [BlobResource(uri=uri, mime_type=item.mime_type, blob=encoded, meta=item.meta)]
