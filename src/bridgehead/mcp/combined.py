"""Combined: several bridges served as one, and a bridge served with fewer of its tools.

Sentences that name a hidden tool are removed from every text (`wording`).

Each part keeps its bridge: it runs with the state of the bridge that declared it and fails in that bridge's
dialect. Parts that a bridge declares after it was combined are not offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .bridge import Bridge
from .changes import Changes, Listener
from .features.tools import Tool


def combine(
    name: str,
    version: str,
    bridges: Iterable[Bridge[Any]],
    *,
    title: str | None = None,
    instructions: str | None = None,
) -> Bridge[Any]:
    """Make one bridge of several. Names of tools and prompts, and URIs, must differ between them."""
    parts = tuple(bridges)
    if instructions is None:
        own = [f"{part.info.name}: {part.instructions}" for part in parts if part.instructions]
        instructions = "\n\n".join(own) or None
    whole: Bridge[Any] = Bridge(
        name,
        version,
        title=title,
        instructions=instructions,
        changing=frozenset().union(*(part.changing for part in parts)),
        subscribable=any(part.subscribable for part in parts),
        logging=any(part.logging for part in parts),
        list_ttl_ms=min((part.list_ttl_ms for part in parts), default=0),
        read_ttl_ms=min((part.read_ttl_ms for part in parts), default=0),
        cache_scope="public" if all(part.cache_scope == "public" for part in parts) else "private",
    )
    _fill(whole, parts)
    return whole


def hide_tools(
    bridge: Bridge[Any], offers: Callable[[Tool], bool], reason: Callable[[Tool], str] = lambda _tool: ""
) -> None:
    """Remove tools from a bridge, and the sentences that name them from all of its texts.

    `reason` returns why a tool is hidden, a sentence for the error of a call to it.
    """
    hidden = {name: reason(tool) for name, tool in bridge.tools.items() if not offers(tool)}
    if not hidden:
        return

    from .wording import Wording, reword_bridge  # lazy: rewording, 2 ms; most servers hide nothing

    bridge.hidden |= hidden
    for name in hidden:
        del bridge.tools[name]
    reword_bridge(bridge, Wording({name: name for name in bridge.tools} | dict.fromkeys(hidden)))


def restrict(
    bridge: Bridge[Any], offers: Callable[[Tool], bool], reason: Callable[[Tool], str] = lambda _tool: ""
) -> Bridge[Any]:
    """Return the same bridge with only those tools for which `offers` is true; see `hide_tools`."""
    info = bridge.info
    view: Bridge[Any] = Bridge(
        info.name,
        info.version,
        title=info.title,
        description=info.description,
        website_url=info.website_url,
        icons=info.icons or (),
        instructions=bridge.instructions,
        dialect=bridge.dialect,
        changing=bridge.changing,
        subscribable=bridge.subscribable,
        logging=bridge.logging,
        page_size=bridge.page_size,
        list_ttl_ms=bridge.list_ttl_ms,
        read_ttl_ms=bridge.read_ttl_ms,
        cache_scope=bridge.cache_scope,
        contract_revision=bridge.contract_revision,
    )
    view.task_store = bridge.task_store
    _fill(view, (bridge,))
    hide_tools(view, offers, reason)
    return view


def _fill(whole: Bridge[Any], parts: tuple[Bridge[Any], ...]) -> None:
    whole.bridges = tuple(bridge for part in parts for bridge in part.bridges)
    whole.changed = _JoinedChanges([part.changed for part in parts])
    for part in parts:
        whole.dialects |= part.dialects
        whole.hidden |= part.hidden
        tables: tuple[tuple[dict[Any, Any], dict[Any, Any]], ...] = (
            (whole.tools, part.tools),
            (whole.resources, part.resources),
            (whole.templates, part.templates),
            (whole.prompts, part.prompts),
            (whole.completers, part.completers),
            (whole.listers, part.listers),
        )
        for into, table in tables:
            for key, value in table.items():
                whole.add(into, key, value)
        for identifier, extension in part.extensions.items():
            known = whole.extensions.get(identifier)
            whole.extensions[identifier] = extension if known is None else known.merge(extension)


class _JoinedChanges(Changes):
    """Forwards the changes of several bridges as those of one."""

    def __init__(self, parts: list[Changes]) -> None:
        super().__init__()
        self._parts = parts

    @property
    def generation(self) -> int:
        """Grows with every change of a list of any part."""
        return super().generation + sum(part.generation for part in self._parts)

    def listen(self, listener: Listener) -> None:
        """Add a listener to every part."""
        super().listen(listener)
        for part in self._parts:
            part.listen(listener)

    def leave(self, listener: Listener) -> None:
        """Remove it from every part."""
        super().leave(listener)
        for part in self._parts:
            part.leave(listener)
