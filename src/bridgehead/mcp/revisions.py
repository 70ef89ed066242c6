"""The five protocol revisions and their differences.

Everything that depends on a revision asks a `Revision` value by feature name, never by comparing dates.
"""

from __future__ import annotations

from msgspec import Struct


class Revision(Struct, frozen=True, kw_only=True):
    """One protocol revision: its name and the features it defines."""

    name: str
    stateless: bool = False
    batches: bool = False
    audio: bool = True
    tool_annotations: bool = True
    progress_messages: bool = True
    completions_capability: bool = True
    titles: bool = True
    structured_output: bool = True
    resource_links: bool = True
    meta_on_items: bool = True
    elicitation: bool = True
    icons: bool = True
    url_elicitation: bool = True
    sampling_tools: bool = True
    priming_events: bool = True
    missing_resource_code: int = -32002
    """The error code for an unknown resource URI; the newest revision has no code of its own for it."""

    def __str__(self) -> str:
        return self.name


_BEFORE_2025_11 = {
    "icons": False,
    "url_elicitation": False,
    "sampling_tools": False,
    "priming_events": False,
}
_BEFORE_2025_06 = {
    **_BEFORE_2025_11,
    "titles": False,
    "structured_output": False,
    "resource_links": False,
    "meta_on_items": False,
    "elicitation": False,
}
_BEFORE_2025_03 = {
    **_BEFORE_2025_06,
    "audio": False,
    "tool_annotations": False,
    "progress_messages": False,
    "completions_capability": False,
}

V2024_11_05 = Revision(name="2024-11-05", **_BEFORE_2025_03)
V2025_03_26 = Revision(name="2025-03-26", batches=True, **_BEFORE_2025_06)
V2025_06_18 = Revision(name="2025-06-18", **_BEFORE_2025_11)
V2025_11_25 = Revision(name="2025-11-25")
V2026_07_28 = Revision(name="2026-07-28", stateless=True, priming_events=False, missing_resource_code=-32602)

REVISIONS = {r.name: r for r in (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28)}
HANDSHAKE = {name: r for name, r in REVISIONS.items() if not r.stateless}
STATELESS = {name: r for name, r in REVISIONS.items() if r.stateless}
ASSUMED = V2024_11_05
NEWEST_HANDSHAKE = V2025_11_25


def negotiate(requested: str | None) -> Revision:
    """Pick the revision that answers an `initialize`: the one asked for, else the newest we can offer."""
    if requested is None:
        return ASSUMED
    return HANDSHAKE.get(requested, NEWEST_HANDSHAKE)
