"""Connect: writes the commands that connect a client to the endpoints of this server. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from msgspec import Struct

from . import layout
from .html import NOTHING, Html, link, tag
from .layout import choices, section

CLIENTS = {
    "claude-code": "Claude Code",
    "cursor": "Cursor",
    "vscode": "VS Code",
    "windsurf": "Windsurf",
    "zed": "Zed",
    "gemini": "Gemini CLI",
    "codex": "Codex CLI",
    "mcp.json": "mcp.json",
}
"""Clients of `bridgehead install` that take an address. A copy: the host does not import the installer."""
FIRST = "claude-code"


class ServerAddress(Struct, frozen=True):
    """One address at which clients reach bridges."""

    title: str
    url: str
    name: str = ""
    """The `--name` for `bridgehead install`, if it cannot derive one from the address."""


def make_command(endpoint: ServerAddress, client: str, *, needs_token: bool) -> str:
    """Return the command that connects a client to an endpoint."""
    words = ["bridgehead", "install", client, "--url", endpoint.url]
    words += ["--name", endpoint.name] if endpoint.name else []
    words += [] if needs_token else ["--no-token"]
    return shlex.join(words)


def write_connect(endpoints: Iterable[ServerAddress], client: str, *, needs_token: bool) -> Html:
    """Write the section with a command for each endpoint, for one client, and offer the other clients."""
    offered = [
        (title, link(layout.CLIENTS, client=None if name == FIRST else name), name == client)
        for name, title in CLIENTS.items()
    ]
    items = [
        tag(
            "li",
            tag("h3", endpoint.title, id=f"endpoint{index}"),
            tag("p", tag("code", endpoint.url)),
            tag(
                "div",
                # tabindex: a long command scrolls, and the keyboard scrolls only a focused element.
                tag(
                    "pre",
                    # A narrow page breaks a command between its words, not at the hyphens of --url.
                    tag(
                        "code",
                        [
                            part
                            for word in make_command(endpoint, client, needs_token=needs_token).split(" ")
                            for part in (" ", tag("span", word, class_="word"))
                        ][1:],
                    ),
                    tabindex="0",
                ),
                # Shown by the script, because it needs the script.
                tag("button", "Copy", type="button", class_="copy", aria_describedby=f"endpoint{index}"),
                class_="command",
            ),
        )
        for index, endpoint in enumerate(endpoints)
    ]
    token = NOTHING
    if needs_token:
        token = tag(
            "p",
            "Each client needs a token: ",
            tag("code", "bridgehead token add NAME"),
            " makes one on the server. Put it into ",
            tag("code", "BRIDGEHEAD_TOKEN"),
            " where the client starts. Any other client takes the address and the header ",
            tag("code", "Authorization: Bearer TOKEN"),
            ".",
            class_="hint",
        )
    return section(
        "Connect a client",
        choices("Client", offered),
        tag("ul", items, class_="connect"),
        token,
        name="connect",
    )
