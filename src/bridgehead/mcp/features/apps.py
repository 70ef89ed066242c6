"""Apps: pages that a host shows beside a tool's answer, the extension `io.modelcontextprotocol/ui`.

Owns the path, the size limit and the visibility of pages. A page is one HTML file with everything in it;
the client side of the protocol between page and host (`app_client.js`) and the style that all pages share
(`app_style.css`) are put into it when it is read.
"""

# ruff: noqa: PTH118, PTH120, PTH123, PTH202 - paths are strings here

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, Literal

from ..connection import Client

UI_EXTENSION = "io.modelcontextprotocol/ui"
UI_MIME_TYPE = "text/html;profile=mcp-app"
UI_SCHEME = "ui://"
PAGE_TTL_MS = 300_000
"""How long a host may keep a page; it changes only with an upgrade."""
MAX_PAGE_BYTES = 30_000
_SHARED = {
    f"/* bridgehead: {name} */": os.path.join(os.path.dirname(__file__), name)
    for name in ("app_client.js", "app_style.css")
}
"""Placeholders in a page, and the files that replace them."""

Visibility = Literal["everyone", "app_hosts", "app"]
"""Where a tool is listed: for every client, for hosts that show apps, or for the page in such a host."""


class AppPage:
    """One page in a file, with the shared client and style inserted."""

    def __init__(self, path: str, max_bytes: int = MAX_PAGE_BYTES) -> None:
        """Check the size; the file is read on first use."""
        self.path = path
        size = sum(os.path.getsize(part) for part in (path, *_SHARED.values()))
        if size > max_bytes:
            message = f"The page {path} has {size} bytes with what pages share; at most {max_bytes} fit"
            raise ValueError(message)

    @cached_property
    def html(self) -> str:
        """The whole document."""
        document = _read(self.path)
        for mark, path in _SHARED.items():
            document = document.replace(mark, _read(path))
        return document


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def describe_ui(uri: str | None, visible_to: Visibility) -> dict[str, Any]:
    """Return a tool's `_meta` about its app; empty without one."""
    ui: dict[str, Any] = {} if uri is None else {"resourceUri": uri}
    if visible_to == "app":
        ui["visibility"] = ["app"]
    return {"ui": ui} if ui else {}


def shows_apps(client: Client) -> bool:
    """Whether a client has declared that it shows such pages."""
    settings = client.extensions.get(UI_EXTENSION)
    return settings is not None and UI_MIME_TYPE in settings.get("mimeTypes", (UI_MIME_TYPE,))
