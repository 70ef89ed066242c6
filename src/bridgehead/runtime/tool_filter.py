"""Tool filter: selects the tools that a bridge offers: read-only ones, by name, or by toolset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from .settings import FLAG, WORDS, Kind, Setting, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bridgehead.mcp import Bridge, Tool

ALL_TOOLSETS = "all"
CORE_TOOLSET = "core"


class ToolFilterSettings(Settings):
    """Which tools are offered, the same for all bridges."""

    read_only = Setting(
        "BRIDGEHEAD_READ_ONLY", FLAG, default=False, about="Offer only tools that change nothing."
    )
    allow_tools = Setting(
        "BRIDGEHEAD_ALLOW_TOOLS", WORDS, (), "Offer only these tools. `*` matches any letters."
    )
    deny_tools = Setting(
        "BRIDGEHEAD_DENY_TOOLS", WORDS, (), "Never offer these tools, even if they are allowed."
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

    @property
    def is_everything(self) -> bool:
        """Whether every tool passes."""
        return not (self.read_only or self.allow or self.deny)

    def __call__(self, tool: Tool) -> bool:
        """Return whether a tool is offered."""
        if self.read_only and not tool.is_read_only:
            return False
        return not _matches(tool.name, self.deny) and (not self.allow or _matches(tool.name, self.allow))


class Toolsets(Struct, frozen=True):
    """Groups of tools to choose from. A tool that is in no group is always offered."""

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
        """Remove the tools of all other groups from a bridge that is being declared."""
        if ALL_TOOLSETS in chosen:
            return
        for group in self.groups.keys() - set(chosen):
            for name in self.groups[group]:
                bridge.tools.pop(name, None)  # a read-only bridge has left some out already


def filter_tools(bridge: Bridge[Any], environment: Mapping[str, str]) -> Bridge[Any]:
    """Return a bridge with the tools that pass the settings in the environment."""
    tool_filter = ToolFilterSettings(environment).tool_filter
    if tool_filter.is_everything:
        return bridge
    from bridgehead.mcp import restrict

    return restrict(bridge, tool_filter)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name, pattern) for pattern in patterns)
