"""Bundles: the official command for MCP Bundles reads the manifest of each."""

import json
import shutil
import tomllib
from pathlib import Path

from bridgehead import __version__
from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import Manifest
from release import bundle
from tests.interop.check import Check
from tests.interop.node import ROOT, Package

JUDGE = Package("@anthropic-ai/mcpb", "2.1.2")


def checks(node: str, folder: Path) -> list[Check]:
    """A check for each bridge that has a bundle."""
    JUDGE.install()
    command = str(JUDGE.home / "dist" / "cli" / "cli.js")
    return [
        Check(
            f"bundle: the manifest of {bridge.name}",
            (node, command, "validate", str(_written(bridge, folder))),
            _passed,
        )
        for bridge in map(plugins.load, plugins.built_in_names())
    ]


def _written(bridge: Manifest, folder: Path) -> Path:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    manifest = bundle.manifest(bridge, project | {"version": __version__})
    path = folder / "bundles" / bridge.name / "manifest.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(manifest), encoding="utf-8")
    shutil.copy(bundle.ICONS / f"{bridge.name}.png", path.with_name(bundle.ICON))  # the command reads it too
    return path


def _passed(output: str) -> None:
    assert "validation passes" in output
    assert "Icon validation passed" in output
