"""The bundles and the descriptions for the registry: what they say agrees with what the bridges are."""

import json
import os
import re
import struct
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import bridgehead
from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import Manifest
from release import bundle, dist, server_json
from tests.support.waiting import PATIENCE

MOMENT = 1_700_000_000
PROJECT: dict[str, Any] = tomllib.loads((dist.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PROJECT["version"] = bridgehead.__version__
LOCKED = dist.LOCKED.read_text(encoding="utf-8")
PLACEHOLDER = re.compile(r"\$\{user_config\.(\w+)\}")
SERVER_NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
COMMAND = """\
import os, sys

def main():
    print(sys.argv[1:], sorted(name for name in os.environ if name.startswith("AOC")))
"""

BRIDGES = [plugins.load(name) for name in plugins.built_in_names()]
every_bridge = pytest.mark.parametrize("bridge", BRIDGES, ids=lambda bridge: bridge.name)


def made(bridge: Manifest, folder: Path, name: str = "made.mcpb") -> Path:
    wheel = folder / f"bridgehead-{bridgehead.__version__}-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    return bundle.make(folder / name, bridge, wheel, LOCKED, PROJECT, MOMENT)


@every_bridge
def test_a_bundle_asks_only_for_settings_that_the_bridge_has(bridge: Manifest) -> None:
    assert {field.variable for field in bridge.form} <= {one.name for one in bridge.settings.declared}


@every_bridge
def test_a_bundle_hands_every_answer_of_its_form_to_the_bridge(bridge: Manifest) -> None:
    manifest = bundle.manifest(bridge, PROJECT)
    handed = [PLACEHOLDER.fullmatch(value) for value in manifest["server"]["mcp_config"]["env"].values()]

    assert [match and match.group(1) for match in handed] == list(manifest["user_config"])


@every_bridge
def test_a_secret_is_asked_for_as_a_secret_everywhere(bridge: Manifest, tmp_path: Path) -> None:
    secret = {setting.name for setting in bridge.settings.declared if setting.is_secret}
    form = bundle.manifest(bridge, PROJECT)["user_config"]
    described = server_json.describe(bridge, "1.0.0", made(bridge, tmp_path), "io.github.someone")
    variables = described["packages"][0]["environmentVariables"]

    asked = secret & {field.variable for field in bridge.form}
    assert {name.upper() for name, entry in form.items() if entry.get("sensitive")} == asked
    assert {variable["name"] for variable in variables if variable["isSecret"]} == asked
    assert [entry for entry in form.values() if entry.get("sensitive") and entry.get("default")] == []


@every_bridge
def test_a_field_that_may_stay_empty_has_a_default_that_the_bridge_accepts(bridge: Manifest) -> None:
    declared = {setting.name: setting for setting in bridge.settings.declared}
    form = bundle.manifest(bridge, PROJECT)["user_config"]

    optional = {name: entry for name, entry in form.items() if not entry["required"]}
    for name, entry in optional.items():
        text = json.dumps(entry["default"]) if isinstance(entry["default"], bool) else str(entry["default"])
        setting = declared[name.upper()]
        assert setting.read({setting.name: text}) == setting.default


@every_bridge
def test_a_bundle_installs_the_wheel_in_it_with_the_locked_versions(bridge: Manifest, tmp_path: Path) -> None:
    with zipfile.ZipFile(made(bridge, tmp_path)) as archive:
        environment = tomllib.loads(archive.read("pyproject.toml").decode())
        names = set(archive.namelist())

    first, *pins = environment["project"]["dependencies"]
    assert first == "bridgehead"
    assert environment["tool"]["uv"]["sources"]["bridgehead"]["path"] in names
    assert pins == [line.removesuffix(" \\") for line in LOCKED.splitlines() if "==" in line]
    assert {"manifest.json", bundle.ENTRY_POINT} <= names


@every_bridge
def test_a_bundle_has_an_icon_and_keywords_of_its_own(bridge: Manifest, tmp_path: Path) -> None:
    with zipfile.ZipFile(made(bridge, tmp_path)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        icon = archive.read(manifest["icon"])

    assert icon[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", icon[16:24]) == (512, 512)
    others = {word for other in BRIDGES if other is not bridge for word in other.keywords}
    assert manifest["keywords"] == ["mcp", *bridge.keywords]
    assert bridge.keywords
    assert not others & set(bridge.keywords)


@every_bridge
def test_the_same_wheel_makes_the_same_bundle(bridge: Manifest, tmp_path: Path) -> None:
    assert made(bridge, tmp_path, "one").read_bytes() == made(bridge, tmp_path, "two").read_bytes()


def test_a_field_that_a_host_leaves_as_its_placeholder_counts_as_empty(tmp_path: Path) -> None:
    package = tmp_path / "bridgehead"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "cli.py").write_text(COMMAND, encoding="utf-8")
    (tmp_path / "main.py").write_bytes(bundle._main("aoc"))  # noqa: SLF001 - as it stands in a bundle

    done = subprocess.run(
        [sys.executable, tmp_path / "main.py"],
        env=os.environ | {"AOC_YEAR": "${user_config.aoc_year}", "AOC_DATA_DIR": "here"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )

    assert done.stdout == "['aoc'] ['AOC_DATA_DIR']\n"


@every_bridge
def test_the_description_for_the_registry_keeps_its_rules(bridge: Manifest, tmp_path: Path) -> None:
    described = server_json.describe(bridge, "1.0.0", made(bridge, tmp_path), "io.github.someone")
    (package,) = described["packages"]

    assert SERVER_NAME.fullmatch(described["name"])
    assert 1 <= len(described["description"]) <= 100
    assert len(described["title"]) <= 100
    assert described["version"] == package["version"] == "1.0.0"
    assert package["packageArguments"] == [{"type": "positional", "value": bridge.name}]
    assert package["transport"] == {"type": "stdio"}


@every_bridge
def test_a_release_with_an_address_names_the_bundle_and_its_checksum(
    bridge: Manifest, tmp_path: Path
) -> None:
    path = made(bridge, tmp_path)
    _, package = server_json.describe(bridge, "1.0.0", path, "io.github.someone", "https://example.com/v1/")[
        "packages"
    ]

    assert package["identifier"] == f"https://example.com/v1/{path.name}"
    assert re.fullmatch(r"[a-f0-9]{64}", package["fileSha256"])
