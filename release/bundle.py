"""Bundle: a `.mcpb` file, which a desktop client installs by a double click and asks the settings for.

Of the format's server types this is `uv`: the client's own uv installs the wheel in the bundle, with the
locked versions of what it needs, on any system. The type `python` would have to carry compiled modules for
every Python and every system. One bundle for each bridge, because nobody wants to be asked for the settings
of the others. The format: manifest version 0.4 of MCP Bundles.
"""

import json
import re
from pathlib import Path
from typing import Any

from bridgehead.runtime.manifest import FormField, Manifest
from bridgehead.runtime.settings import FLAG, PATH, Setting
from release import bundle_main, packed

MANIFEST_VERSION = "0.4"
ICON = "icon.png"
ICONS = Path(__file__).parent / "icons"
"""An SVG for each bridge, and the PNG that `make browser ARGS=--pictures` draws of it."""
ENTRY_POINT = "server/main.py"
SYSTEMS = ["darwin", "linux", "win32"]
PIN = re.compile(r"^([\w.-]+==[^\s\\]+(?: ;[^\\\n]+(?<! ))?)", re.MULTILINE)


def make(
    target: Path, bridge: Manifest, wheel: Path, locked: str, project: dict[str, Any], moment: int
) -> Path:
    """Make the bundle of one bridge around the wheel, with the locked versions of a requirements file."""
    version = project["version"]
    contents = {
        "manifest.json": _pretty(manifest(bridge, project)),
        "pyproject.toml": _environment(bridge.name, version, wheel.name, locked, project).encode(),
        ICON: (ICONS / f"{bridge.name}.png").read_bytes(),
        ENTRY_POINT: _main(bridge.name),
        wheel.name: wheel.read_bytes(),
    }
    with target.open("wb") as file:
        packed.write(file, contents, moment)
    return target


def manifest(bridge: Manifest, project: dict[str, Any]) -> dict[str, Any]:
    """Describe the bundle to the client that installs it."""
    declared = {setting.name: setting for setting in bridge.settings.declared}
    return {
        "manifest_version": MANIFEST_VERSION,
        "name": f"bridgehead-{bridge.name}",
        "display_name": f"Bridgehead: {bridge.title}",
        "version": project["version"],
        "description": bridge.description,
        "author": {"name": project["authors"][0]["name"]},
        "license": project["license"],
        "icon": ICON,
        "keywords": ["mcp", *bridge.keywords],
        "server": {
            "type": "uv",
            "entry_point": ENTRY_POINT,
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", ENTRY_POINT],
                "env": {field.variable: f"${{user_config.{_key(field)}}}" for field in bridge.form},
            },
        },
        "tools_generated": True,
        "prompts_generated": True,
        "compatibility": {"platforms": SYSTEMS, "runtimes": {"python": project["requires-python"]}},
        "user_config": {_key(field): _form(field, declared[field.variable]) for field in bridge.form},
    }


def _key(field: FormField) -> str:
    return field.variable.lower()


def _form(field: FormField, setting: Setting[Any]) -> dict[str, Any]:
    form: dict[str, Any] = {
        "type": _type(setting),
        "title": field.title,
        "description": setting.about.replace("`", ""),
        "required": field.is_required,
    }
    if setting.is_secret:
        form["sensitive"] = True
    if not field.is_required:  # without a default, a field that was left empty arrives as its placeholder
        form["default"] = _default(setting)
    return form


def _type(setting: Setting[Any]) -> str:
    if setting.kind is FLAG:
        return "boolean"
    if setting.kind is PATH:
        return "directory"
    return "number" if isinstance(setting.default, int | float) else "string"


def _default(setting: Setting[Any]) -> str | float | bool:
    if _type(setting) in ("number", "boolean"):
        plain: float | bool = setting.default
        return plain
    return "" if setting.default is None else str(setting.default)


def _environment(bridge: str, version: str, wheel: str, locked: str, project: dict[str, Any]) -> str:
    pins = "".join(f"    {json.dumps(pin)},\n" for pin in PIN.findall(locked))
    return f"""\
# What uv installs before it runs the bridge: the wheel beside this file, with the versions it was
# tested with.
[project]
name = "bridgehead-{bridge}-bundle"
version = "{version}"
requires-python = "{project["requires-python"]}"
dependencies = [
    "bridgehead",
{pins}]

[tool.uv]
package = false

[tool.uv.sources]
bridgehead = {{ path = "{wheel}" }}
"""


def _main(bridge: str) -> bytes:
    text = Path(bundle_main.__file__).read_text(encoding="utf-8")
    return text.replace(bundle_main.BRIDGE, bridge).encode()


def _pretty(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
