"""Tool filter: selects the tools that a bridge offers: read-only ones, by name, or by toolset.

Also the prefix of their names.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bridgehead.mcp import Bridge, DeclarationError, Tool, hide_tools, prefix_tools, restrict

from .settings import FLAG, WORDS, Kind, Setting, SettingError, Settings, closest

ALL_TOOLSETS = "all"
CORE_TOOLSET = "core"
MAX_PREFIX = 32
"""Characters of a prefix for tools."""


def _parse_prefix(text: str) -> str:
    # What every model API accepts in the name of a function.
    if not (text.isascii() and text.replace("-", "_").isidentifier()) or text.startswith("-"):
        raise ValueError(text)
    # A name may have 64 characters, and ours have up to 25: so the settings refuse a longer prefix, before a
    # host starts. `add_prefix` checks the tools of third-party bridges.
    if len(text) > MAX_PREFIX:
        raise ValueError(text)
    return text


TOOL_PREFIX = Kind(
    _parse_prefix, f"up to {MAX_PREFIX} letters, digits, _ and -, beginning with a letter or _"
)


def prefix_setting(variable: str, example: str) -> Setting[str]:
    """Declare the prefix of a bridge's tools; name the attribute `tool_prefix`."""
    return Setting(
        variable,
        TOOL_PREFIX,
        "",
        f"Put this before the name of every tool, such as `{example}`, for clients that do not tell "
        "the tools of several servers apart.",
    )


class ToolFilterSettings(Settings):
    """Which tools are offered, the same for all bridges."""

    read_only = Setting(
        "BRIDGEHEAD_READ_ONLY", FLAG, default=False, about="Offer only tools that change nothing."
    )
    allow_tools = Setting(
        "BRIDGEHEAD_ALLOW_TOOLS",
        WORDS,
        (),
        "Offer only these tools, with or without their prefix. `*` matches any letters.",
    )
    deny_tools = Setting(
        "BRIDGEHEAD_DENY_TOOLS",
        WORDS,
        (),
        "Never offer these tools, with or without their prefix, even if they are allowed.",
    )

    @property
    def tool_filter(self) -> ToolFilter:
        """The rule that these settings make."""
        return ToolFilter(self.read_only, self.allow_tools, self.deny_tools)


class ToolFilter(Struct, frozen=True):
    """A predicate over tools. A tool that is not marked read-only counts as writing."""

    read_only: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    """Prefixes of tool names; the lists match names with and without them."""
    read_only_reason: str = "BRIDGEHEAD_READ_ONLY hides it."

    @property
    def is_everything(self) -> bool:
        """Whether every tool passes."""
        return not (self.read_only or self.allow or self.deny)

    def __call__(self, tool: Tool) -> bool:
        """Return whether a tool is offered."""
        return not self.reason(tool)

    def reason(self, tool: Tool) -> str:
        """Return a sentence that says what hides a tool; empty if it is offered."""
        if self.read_only and not tool.is_read_only:
            return self.read_only_reason
        names = (tool.name, *(prefix + tool.name for prefix in self.prefixes if prefix))
        if _matches(names, self.deny):
            return "BRIDGEHEAD_DENY_TOOLS hides it."
        if self.allow and not _matches(names, self.allow):
            return "BRIDGEHEAD_ALLOW_TOOLS does not name it."
        return ""


def find_unmatched(
    settings: ToolFilterSettings, names: Collection[str], *, only_misspelt: bool = False
) -> list[str]:
    """Return a sentence for each pattern that matches none of the tools, named with and without prefix.

    `only_misspelt` leaves out patterns that may be for the tools of another bridge.
    """
    problems = []
    for setting in (ToolFilterSettings.allow_tools, ToolFilterSettings.deny_tools):
        for pattern in settings.values[setting.name]:
            if _matches(names, (pattern,)):
                continue
            meant = closest(pattern, names)
            if meant or not only_misspelt:
                advice = f"Did you mean {meant!r}?" if meant else "`bridgehead tools` lists them."
                problems.append(f"{setting.name}: no tool is called {pattern!r}. {advice}")
    return problems


class Toolsets(Struct, frozen=True):
    """Groups of tools to choose from. A tool that is in no group is always offered."""

    variable: str
    """The setting that chooses."""
    groups: dict[str, tuple[str, ...]]

    @property
    def kind(self) -> Kind[tuple[str, ...]]:
        """The kind of a setting that names groups, `all`, or `core` for none."""

        def parse(text: str) -> tuple[str, ...]:
            words = tuple(word.lower() for word in WORDS.parse(text))
            if not set(words) <= {ALL_TOOLSETS, CORE_TOOLSET, *self.groups}:
                raise ValueError(text)
            return words

        return Kind(parse, f"all, core, or some of {', '.join(self.groups)}, separated by commas")

    def restrict(self, bridge: Bridge[Any], chosen: tuple[str, ...]) -> None:
        """Hide the tools of all other groups of a bridge whose parts are all declared."""
        if ALL_TOOLSETS in chosen:
            return

        others = {name for group in self.groups.keys() - set(chosen) for name in self.groups[group]}
        reason = f"{self.variable}={','.join(chosen)} hides it."
        hide_tools(bridge, lambda tool: tool.name not in others, lambda _tool: reason)


def offer_tools(bridge: Bridge[Any], settings: Settings, environment: Mapping[str, str]) -> Bridge[Any]:
    """Return a bridge with the tools that pass the settings in the environment, and with its prefix."""
    prefix, filters = prefix_of(settings), ToolFilterSettings(environment)
    tool_filter = filters.tool_filter
    if not tool_filter.is_everything:
        for problem in find_unmatched(filters, tool_names(bridge, prefix), only_misspelt=True):
            sys.stderr.write(f"bridgehead: {problem}\n")

        rule = replace(tool_filter, prefixes=(prefix,))
        bridge = restrict(bridge, rule, rule.reason)
    return add_prefix(bridge, settings, prefix)


def tool_names(bridge: Bridge[Any], *prefixes: str) -> set[str]:
    """Return the names of a bridge's tools, with and without prefixes."""
    return {prefix + tool.name for tool in bridge.tools.values() for prefix in ("", *prefixes)}


def prefix_of(settings: Settings) -> str:
    """Return the prefix of a bridge's tools; empty if it has none, or no setting for it."""
    prefix: str = getattr(settings, "tool_prefix", "")
    return prefix


def add_prefix(bridge: Bridge[Any], settings: Settings, prefix: str) -> Bridge[Any]:
    """Return a bridge with a prefix before its tools; raise SettingError if a name would be too long.

    `settings` are those that have the prefix.
    """
    if not prefix:
        return bridge

    try:
        return prefix_tools(bridge, prefix)
    except DeclarationError as error:
        name = type(settings).tool_prefix.name  # type: ignore[attr-defined]
        raise SettingError(name, prefix, f"a shorter one. {error}".rstrip(".")) from None


def _matches(names: Collection[str], patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)
