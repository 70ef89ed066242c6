"""Fields by revision: owns which part of a message came with which protocol revision.

A path names a place in a result (or, for what the server sends unasked, in the whole message): `[]` stands
for every item of a list, and `:name` behind a place for a content block of that type. What is not in the
table has been there from the first revision on, or is unknown to every one, which the official types tell.
"""

from collections.abc import Iterator
from typing import Any

MARCH, JUNE, NOVEMBER, STATELESS = "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"

_OPAQUE = {"inputSchema", "outputSchema", "structuredContent", "_meta", "requestedSchema", "data", "theme"}
"""Members whose insides belong to the bridge, not to the protocol."""


def _block(path: str) -> dict[str, str]:
    """Say what came when to a content block."""
    return {
        f"{path}:audio": MARCH,
        f"{path}:resource_link": JUNE,
        f"{path}._meta": JUNE,
        f"{path}.annotations.lastModified": JUNE,
        f"{path}.resource._meta": JUNE,
        f"{path}.icons": NOVEMBER,
    }


def _listed(path: str) -> dict[str, str]:
    """Say what came when to an item of any list."""
    return {
        f"{path}.title": JUNE,
        f"{path}._meta": JUNE,
        f"{path}.annotations.lastModified": JUNE,
        f"{path}.icons": NOVEMBER,
    }


SINCE: dict[str, dict[str, str]] = {
    "initialize": {
        "capabilities.completions": MARCH,
        "serverInfo.title": JUNE,
        "serverInfo.description": NOVEMBER,
        "serverInfo.icons": NOVEMBER,
        "serverInfo.websiteUrl": NOVEMBER,
    },
    "tools/list": {"tools[].annotations": MARCH, "tools[].outputSchema": JUNE, **_listed("tools[]")},
    "tools/call": {"structuredContent": JUNE, **_block("content[]")},
    "prompts/list": {"prompts[].arguments[].title": JUNE, **_listed("prompts[]")},
    "prompts/get": _block("messages[].content"),
    "resources/list": _listed("resources[]"),
    "resources/templates/list": _listed("resourceTemplates[]"),
    "resources/read": {"contents[]._meta": JUNE},
    "notifications/progress": {"params.message": MARCH},
    "sampling/createMessage": {
        "params.messages[].content[]": NOVEMBER,
        "params.messages[]._meta": NOVEMBER,
        "params.tools": NOVEMBER,
        "params.toolChoice": NOVEMBER,
        **_block("params.messages[].content"),
    },
    "elicitation/create": {
        "params.mode": NOVEMBER,
        "params.url": NOVEMBER,
        "params.elicitationId": NOVEMBER,
    },
}
_IN_EVERY_RESULT = {"resultType": STATELESS, "ttlMs": STATELESS, "cacheScope": STATELESS}


def paths(value: Any, path: str = "") -> Iterator[str]:
    """Give every place in a message that the protocol defines."""
    if isinstance(value, list):
        if value:
            yield f"{path}[]"
        for item in value:
            yield from paths(item, f"{path}[]")
    elif isinstance(value, dict):
        if path and isinstance(value.get("type"), str):
            yield f"{path}:{value['type']}"
        for name, member in value.items():
            below = f"{path}.{name}" if path else name
            yield below
            if name not in _OPAQUE:
                yield from paths(member, below)


def undefined_fields(revision: str, method: str, body: Any) -> set[str]:
    """Give the places in a message that its revision does not define yet."""
    since = {**_IN_EVERY_RESULT, **SINCE.get(method, {})}
    return {path for path in paths(body) if since.get(path, "") > revision}
