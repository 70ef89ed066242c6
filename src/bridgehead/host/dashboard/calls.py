"""Calls: computes the page that searches the audit."""

from __future__ import annotations

from collections.abc import Mapping

from bridgehead.runtime.errors import BridgeError

from ..audit.command import read_time
from ..audit.trail import OUTCOMES, AuditStore, Query
from ..auth.grants import Grant
from . import layout
from .layout import Page
from .listing import PAGE_SIZE, read_page
from .templates import link, render


async def write_calls(store: AuditStore, query: Mapping[str, str], grant: Grant, now: float) -> Page:
    """Write the page of the calls that an address asks for.

    A visitor whose token does not open a bridge does not see its calls. Raises HostRejection.
    """
    number, problem = read_page(query, "page"), ""
    outcome = query.get("outcome", "")
    found = []
    try:
        wanted = Query(
            query.get("caller", "").strip(),
            query.get("tool", "").strip(),
            outcome if outcome in {*OUTCOMES, "failed"} else "",
            read_time(query.get("since", "").strip(), now, "Since"),
            read_time(query.get("until", "").strip(), now, "Until"),
            PAGE_SIZE + 1,
            (number - 1) * PAGE_SIZE,
        )
        found = await store.search(wanted)
    except BridgeError as failure:  # a time that is none, or a store that is down
        problem = str(failure)
    shown = [line for line in found[:PAGE_SIZE] if not line.bridge or grant.may_read(line.bridge)]

    def address(page: int) -> str:
        return link(layout.CALLS, **{**query, "page": None if page == 1 else page})

    body = render(
        "calls.html",
        query=query,
        outcomes=["", "failed", *OUTCOMES],
        lines=shown,
        problem=problem,
        newer=address(number - 1) if number > 1 else "",
        older=address(number + 1) if len(found) > PAGE_SIZE else "",
    )
    return Page("Calls", body, layout.CALLS)
