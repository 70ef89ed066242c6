"""Clients: which programs there are, where each keeps its servers, and how it writes them.

A table, and nothing else: docs/install.md names the source of every line. A place is a path under a root of
`Machine.root`; of several, the first that exists is used, or the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Literal

from msgspec import Struct

from .edit import Format
from .machine import Machine

Scope = Literal["user", "project"]
Places = Mapping[str, tuple[str, ...]]
_EVERYWHERE = ("linux", "darwin", "win32")


def _same(*places: str) -> Places:
    return dict.fromkeys(_EVERYWHERE, places)


class Client(Struct, frozen=True, kw_only=True):
    """A program that starts or reaches MCP servers."""

    id: str
    title: str
    section: str
    """The member of the file's root that holds the servers."""
    user: Places | None
    project: str | None = None
    form: Format = "json"
    reference: str = ""
    """How the value of a variable is written, with {} for its name."""
    inherits: bool = True
    """Whether a server that it starts sees the environment of the client."""
    stdio_type: str = ""
    url_field: str = "url"
    """Empty if its file takes no remote servers."""
    http_type: str = ""
    trust: str = ""
    """The step a user must take in the client before it starts a server; empty if none."""
    prefix_tools: bool = False
    """Whether servers prefix their tools, because readers of the file may not namespace tools by server."""
    sign: str = ""
    """A place that shows that the client is there; by default the folder of its file."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Return the scopes that it has, the usual one first."""
        scopes: list[Scope] = ["user"] if self.user else []
        return (*scopes, "project") if self.project else tuple(scopes)

    def places(self, machine: Machine, scope: Scope) -> tuple[PurePath, ...]:
        """Return where its file may be; a part of a path may be a pattern with a *."""
        if scope == "project" or self.user is None:
            return (_path(machine, self.project or ""),)
        return tuple(_path(machine, place) for place in self.user.get(machine.platform, self.user["linux"]))

    def signs(self, machine: Machine) -> tuple[PurePath, ...]:
        """Return paths of which at least one exists if the client is installed."""
        if self.sign:
            return (_path(machine, self.sign),)
        return tuple(place.parent for place in self.places(machine, "user")) if self.user else ()


def _path(machine: Machine, place: str) -> PurePath:
    root, *parts = place.split("/")
    return machine.root(root).joinpath(*parts)


CLIENTS = (
    Client(
        id="claude-desktop",
        title="Claude Desktop",
        section="mcpServers",
        user={
            "linux": ("config/Claude/claude_desktop_config.json",),
            "darwin": ("support/Claude/claude_desktop_config.json",),
            # Windows redirects the app data of packaged apps into a folder of their own.
            "win32": (
                "local/Packages/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json",
                "roaming/Claude/claude_desktop_config.json",
            ),
        },
        inherits=False,
        url_field="",
    ),
    Client(
        id="claude-code",
        title="Claude Code",
        section="mcpServers",
        user=_same("claude/.claude.json"),
        project="project/.mcp.json",
        reference="${{{}}}",
        stdio_type="stdio",
        http_type="http",
        sign="home/.claude",
    ),
    Client(
        id="cursor",
        title="Cursor",
        section="mcpServers",
        user=_same("home/.cursor/mcp.json"),
        project="project/.cursor/mcp.json",
        reference="${{env:{}}}",
        stdio_type="stdio",
    ),
    Client(
        id="vscode",
        title="VS Code",
        section="servers",
        user={
            "linux": ("config/Code/User/mcp.json",),
            "darwin": ("support/Code/User/mcp.json",),
            "win32": ("roaming/Code/User/mcp.json",),
        },
        project="project/.vscode/mcp.json",
        reference="${{env:{}}}",
        stdio_type="stdio",
        http_type="http",
    ),
    Client(
        id="windsurf",
        title="Windsurf",
        section="mcpServers",
        user=_same("home/.codeium/windsurf/mcp_config.json"),
        reference="${{env:{}}}",
        url_field="serverUrl",
    ),
    Client(
        id="zed",
        title="Zed",
        section="context_servers",
        user={
            "linux": ("config/zed/settings.json",),
            "darwin": ("home/.config/zed/settings.json",),
            "win32": ("roaming/Zed/settings.json",),
        },
    ),
    Client(
        id="gemini",
        title="Gemini CLI",
        section="mcpServers",
        user=_same("home/.gemini/settings.json"),
        project="project/.gemini/settings.json",
        reference="${{{}}}",
        url_field="httpUrl",
        trust="It starts servers only in folders that it trusts: /permissions there lets you trust one.",
    ),
    Client(
        id="codex",
        title="Codex CLI",
        section="mcp_servers",
        user=_same("codex/config.toml"),
        project="project/.codex/config.toml",
        form="toml",
        inherits=False,
    ),
    Client(
        id="mcp.json",
        title="mcp.json",
        section="mcpServers",
        user=None,
        project="project/mcp.json",
        reference="${{{}}}",
        http_type="http",
        # Any program may read it. The other clients in this table prefix a tool with its server's name,
        # always or on collision; OpenAI Agents refuses two servers with a tool of the same name, and Continue
        # does not show the server.
        prefix_tools=True,
    ),
)
BY_ID = {client.id: client for client in CLIENTS}
