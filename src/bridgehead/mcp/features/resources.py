"""Resources: with a fixed URI, or by a URI template."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import field

from ..calls.context import Context
from ..coroutines import settle
from ..values.content import Annotations, BlobResource, Icon, TextResource, Wire
from ..values.custom import encode
from .apps import UI_MIME_TYPE
from .bridge_base import BridgeBase
from .functions import check_item, make_reader
from .results import InvalidResult
from .uri_template import UriTemplate, check_uri

Contents = TextResource | BlobResource
Returned = str | bytes | Contents | list[Contents] | Any
"""What a reader returns: text, bytes, contents, or data that is sent as JSON."""


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
        function: Callable[..., Returned | Awaitable[Returned]],
        bridge: BridgeBase,
        ttl_ms: int | None = None,
    ) -> None:
        self.item = item
        self.bridge = bridge
        self.ttl_ms = ttl_ms
        """How long a client may keep the contents; None is the bridge's `read_ttl_ms`."""
        check_uri(item.uri)
        self.function = function
        self._read = make_reader(function, f"Resource {item.uri}")
        check_item(item, f"Resource {item.uri}")

    @property
    def is_app(self) -> bool:
        """Whether it is an app's page, which is listed only for hosts that show apps."""
        return self.item.mime_type == UI_MIME_TYPE

    async def read(self, context: Context[Any]) -> list[Contents]:
        """Read it."""
        return wrap_contents(self.item.uri, self.item, await settle(self._read({}, context)))


class Template:
    """Resources whose URIs follow a pattern."""

    def __init__(
        self,
        item: TemplateItem,
        function: Callable[..., Returned | Awaitable[Returned]],
        bridge: BridgeBase,
    ) -> None:
        self.item = item
        self.bridge = bridge
        self.function = function
        self.uri = UriTemplate(item.uri_template)
        label = f"Template {item.uri_template}"
        self._read = make_reader(function, label, self.uri.variables, self.uri.query)
        check_item(item, label)

    async def read(self, uri: str, variables: dict[str, str], context: Context[Any]) -> list[Contents]:
        """Read the resource with these variables."""
        return wrap_contents(uri, self.item, await settle(self._read(variables, context)))


def wrap_contents(uri: str, item: ResourceItem | TemplateItem, value: Any) -> list[Contents]:
    """Wrap a reader's return value: text, bytes, ready-made contents, or data, which becomes JSON."""
    if isinstance(value, Contents):
        return [value]
    if isinstance(value, list) and value and all(isinstance(one, Contents) for one in value):
        return value
    if isinstance(value, bytes | bytearray):
        encoded = base64.b64encode(value).decode()
        return [BlobResource(uri=uri, mime_type=item.mime_type, blob=encoded, meta=item.meta)]
    mime_type = item.mime_type
    if not isinstance(value, str):
        try:
            value = b"" if value is None else encode(value)
        except (TypeError, ValueError, OverflowError):
            value = b""
        if not value:
            raise InvalidResult(f"Resource {uri}", "expected text, bytes, data or contents")
        value, mime_type = value.decode(), mime_type or "application/json"
    return [TextResource(uri=uri, mime_type=mime_type, text=value, meta=item.meta)]
