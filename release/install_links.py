"""Install links: the buttons of docs/install.md that add a published bridge to Cursor or VS Code.

A link carries the same entry that `bridgehead install` writes, with `uvx` as its command. `make docs` puts
the buttons between two marks of the page, and `make check` compares.
"""

import argparse
import base64
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bridgehead.install import entries
from bridgehead.install.clients import CLIENTS, Client
from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import Manifest

PAGE = Path(__file__).parents[1] / "docs" / "install.md"
CURSOR = "https://cursor.com/en/install-mcp"
VSCODE = "https://vscode.dev/redirect"
"""Pages that show README files remove links with a scheme of their own, so both go through https."""
_CURSOR, _VSCODE = (next(one for one in CLIENTS if one.id == name) for name in ("cursor", "vscode"))
OFFERED = (_CURSOR, _VSCODE)
"""Clients that can be given a server by a link."""
BEGIN, END = "<!-- buttons, made by `make docs` -->\n", "<!-- until here -->\n"


def cursor_link(bridge: Manifest) -> str:
    """Return the address that offers a bridge to Cursor: its name, and its entry in Base64."""
    entry = _entry(_CURSOR, bridge)
    config = base64.b64encode(_compact(entry)).decode()
    return f"{CURSOR}?name={bridge.name}&config={quote(config, safe='')}"


def vscode_link(bridge: Manifest) -> str:
    """Return the address that offers a bridge to VS Code, which asks for a secret and keeps it."""
    entry: dict[str, Any] = {"name": bridge.name, **_entry(_VSCODE, bridge)}
    inputs = [
        {"type": "promptString", "id": field.variable, "description": field.title, "password": True}
        for field in bridge.form
        if field.variable in entry.get("env", {})
    ]
    if inputs:
        entry["env"] = {one["id"]: f"${{input:{one['id']}}}" for one in inputs}
        entry["inputs"] = inputs
    return f"{VSCODE}?url={quote('vscode:mcp/install?' + quote(_compact(entry), safe=''), safe='')}"


def _entry(client: Client, bridge: Manifest) -> dict[str, Any]:
    secrets = {setting.name for setting in bridge.settings.declared if setting.is_secret}
    needed = {field.variable: "" for field in bridge.form if field.is_required and field.variable in secrets}
    needs = entries.ServerEnvironment({}, needed, ())
    return entries.local(client, ("uvx", "bridgehead", bridge.name), needs, write_secrets=False)


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def buttons(bridges: Iterable[Manifest]) -> str:
    """Return one line of Markdown with a button for each bridge and client."""
    pieces = []
    for bridge in bridges:
        for client, link in ((_CURSOR, cursor_link(bridge)), (_VSCODE, vscode_link(bridge))):
            picture = f"images/{button_name(bridge.name, client)}"
            pieces.append(f"[![{bridge.name} in {client.title}]({picture})]({link})")
    return " ".join(pieces) + "\n"


def button_name(bridge: str, client: Client) -> str:
    """Return the file name of the picture of a button."""
    return f"install-{bridge}-{client.id}.svg"


def placed(page: str, made: str) -> str:
    """Put the buttons between their marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"docs/install.md lacks {BEGIN.strip()} or {END.strip()}.")
    return f"{before}{begin}{made}{end}{after}"


def main(arguments: list[str]) -> int:
    """Write the buttons into the page, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the buttons are old")
    options = parser.parse_args(arguments)
    page = PAGE.read_text(encoding="utf-8")
    made = placed(page, buttons(plugins.load(name) for name in plugins.built_in_names()))
    if made == page:
        return 0
    if options.check:
        print("The buttons of docs/install.md are old. Run `make docs`.")
        return 1
    PAGE.write_text(made, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
