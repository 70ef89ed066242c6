"""Content: the blocks of answers, and how they are fitted to a client's revision.

These are the wire types themselves: a handler builds what is encoded. `fit` drops or replaces what an older
revision does not define; nothing else may know which field came with which revision.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ..revisions import Revision

Role = Literal["user", "assistant"]


class Wire(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A value on the wire: camelCase names, members at their default left out."""


class Icon(Wire, frozen=True):
    """A picture for a tool, resource, prompt or server; `src` is an https or data URI."""

    src: str
    mime_type: str | None = None
    sizes: tuple[str, ...] | None = None
    theme: Literal["light", "dark"] | None = None


class Annotations(Wire, frozen=True):
    """Hints for a client about who a piece of content is for and how much it matters."""

    audience: tuple[Role, ...] | None = None
    priority: float | None = None
    last_modified: str | None = None


class Text(Wire, frozen=True, tag_field="type", tag="text"):
    """Plain text."""

    text: str
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class Image(Wire, frozen=True, tag_field="type", tag="image"):
    """An image, base64-encoded."""

    data: str
    mime_type: str
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class Audio(Wire, frozen=True, tag_field="type", tag="audio"):
    """A sound, base64-encoded."""

    data: str
    mime_type: str
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TextResource(Wire, frozen=True, kw_only=True):
    """The contents of a text resource."""

    uri: str
    mime_type: str | None = None
    text: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class BlobResource(Wire, frozen=True, kw_only=True):
    """The contents of a binary resource, base64-encoded."""

    uri: str
    mime_type: str | None = None
    blob: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class Embedded(Wire, frozen=True, tag_field="type", tag="resource"):
    """A resource with its contents, inside an answer."""

    resource: TextResource | BlobResource
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class Link(Wire, frozen=True, tag_field="type", tag="resource_link"):
    """A pointer to a resource that the client can read."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


Content = Text | Image | Audio | Embedded | Link


class PromptMessage(Wire, frozen=True):
    """One message of a prompt."""

    role: Role
    content: Content


_AnyWire = TypeVar("_AnyWire", bound=Struct)


def fit(item: _AnyWire, revision: Revision) -> _AnyWire:
    """Return a listed item or a block without the fields that the revision does not define."""
    if revision.icons:
        return item
    dropped = {"icons"}
    if not revision.titles:
        dropped |= {"title"}
    if not revision.meta_on_items:
        dropped |= {"meta"}
    changes: dict[str, Any] = {name: None for name in dropped if getattr(item, name, None) is not None}
    annotations = getattr(item, "annotations", None)
    if isinstance(annotations, Annotations) and not revision.meta_on_items:
        changes["annotations"] = replace(annotations, last_modified=None)
    return replace(item, **changes) if changes else item


def fit_block(block: Content, revision: Revision) -> Content:
    """Return a content block that the revision defines; text stands in for what it lacks."""
    if revision.icons:
        return block
    if isinstance(block, Audio) and not revision.audio:
        return Text(f"[audio, {block.mime_type}: this client's protocol revision cannot carry it]")
    if isinstance(block, Link) and not revision.resource_links:
        return Text(f"{block.title or block.name}: {block.uri}")
    if isinstance(block, Embedded):
        block = replace(block, resource=fit(block.resource, revision))
    return fit(block, revision)


def json_text(value: Any) -> Text:
    """Return a structured value as JSON text, for clients that read only text."""
    return Text(msgspec.json.encode(value).decode())
