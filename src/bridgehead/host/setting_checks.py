"""Setting checks: variables that begin like a setting and are none, and settings that name what is not there.

`serve` and a bridge say them at the start, `install` and `doctor` list them.
"""

from __future__ import annotations

from collections.abc import Mapping

from bridgehead.runtime import events, plugins
from bridgehead.runtime.manifest import Manifest, read_settings
from bridgehead.runtime.settings import (
    PRODUCT,
    SettingError,
    UnusedSetting,
    closest,
    find_unused,
    prefix_of_bridge,
)
from bridgehead.runtime.tool_filter import add_prefix, find_unmatched, prefix_of, tool_names

from .registry import HARM
from .settings import HostSettings


def find_problems(
    environment: Mapping[str, str], settings: HostSettings, manifests: Mapping[str, Manifest]
) -> list[str]:
    """Return a sentence for each tool or event that a setting names and that does not exist."""
    known = _known(manifests)
    problems = []
    if settings.allow_tools or settings.deny_tools:
        problems += _check_patterns(environment, settings, known)
    for pattern in settings.webhook_events:
        subject = pattern.partition(".")[0]
        # A bridge of another distribution may publish subjects of its own.
        meant = closest(pattern, events.TYPES) or closest(
            subject, {kind.partition(".")[0] for kind in events.TYPES}
        )
        is_ours = any(kind.startswith(f"{subject}.") for kind in events.TYPES)
        if not any(events.matches((pattern,), kind) for kind in events.TYPES) and (meant or is_ours):
            advice = (
                f"Did you mean {meant!r}?"
                if meant and meant != subject
                else f"There are {', '.join(events.TYPES)}."
            )
            problems.append(f"BRIDGEHEAD_WEBHOOK_EVENTS: no event is called {pattern!r}. {advice}")
    return problems


def find_unused_settings(
    environment: Mapping[str, str], manifests: Mapping[str, Manifest]
) -> list[UnusedSetting]:
    """Return every variable that begins like a setting of the host or of a bridge, and is none."""
    known = _known(manifests).values()
    declared = [setting for manifest in known for setting in manifest.settings.declared]
    removed = set(HostSettings.removed).union(*(manifest.settings.removed for manifest in known))
    prefixes = (PRODUCT, *(prefix_of_bridge(manifest.name) for manifest in known))
    return find_unused(environment, [*HostSettings.declared, *declared], removed, prefixes)


def _known(manifests: Mapping[str, Manifest]) -> dict[str, Manifest]:
    """Add the built-in bridges that are not served: their variables are settings too."""
    return {name: plugins.load(name) for name in plugins.built_in_names()} | dict(manifests)


def check_prefix(
    environment: Mapping[str, str], settings: HostSettings, manifests: Mapping[str, Manifest]
) -> None:
    """Raise SettingError for a prefix that makes the name of a tool too long."""
    for manifest in manifests.values() if settings.tool_prefix else ():
        try:
            bridge = manifest.make(read_settings(manifest, environment), None)
        except HARM:  # it does not stop the others
            continue
        add_prefix(bridge, settings, settings.tool_prefix)


def _check_patterns(
    environment: Mapping[str, str], settings: HostSettings, manifests: Mapping[str, Manifest]
) -> list[str]:
    names: set[str] = set()
    for manifest in manifests.values():
        usable = dict(environment)
        while True:
            try:
                own = read_settings(manifest, usable)
                names |= tool_names(manifest.make(own, None), prefix_of(own), settings.tool_prefix)
                break
            except HARM as problem:  # the registry reports it
                # An invalid setting of one bridge must not hide that DENY_TOOLS matches nothing: skip that
                # bridge.
                if not isinstance(problem, SettingError) or usable.pop(problem.name, None) is None:
                    return []  # its tools are not known, and a pattern may be for one of them
    return find_unmatched(settings, names)
