"""Converters: what the SDKs of three vendors make of every tool's schemas."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import make_bridge
from tests.frameworks.environments import prepare_python

REQUIREMENTS = ("anthropic==2.8.0", "google-genai==3.1.0", "openai-agents==0.24.0")
NEEDED = {"MERCURY_API_KEY": "sk_0123456789abcdef"}


@dataclass(frozen=True)
class Converted:
    """What came of the conversion, by converter."""

    tools: int
    dropped: dict[str, list[str]]
    """The words of JSON Schema that a converter leaves out."""
    refused: dict[str, dict[str, str]]
    """The tools that it refuses, with its reason."""


def convert_tools() -> Converted:
    """Convert every tool of every bridge with every converter."""
    tools = [
        {"name": tool.name, "inputSchema": tool.input_schema, "outputSchema": tool.listed_output_schema}
        for name in plugins.built_in_names()
        for tool in make_bridge(plugins.load(name), NEEDED).tools.values()
    ]
    done = subprocess.run(
        [str(prepare_python(REQUIREMENTS)), str(Path(__file__).with_name("convert.py"))],
        input=json.dumps(tools),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    found = json.loads(done.stdout)
    return Converted(
        len(tools),
        {name: one["dropped"] for name, one in found.items()},
        {name: one["refused"] for name, one in found.items() if one["refused"]},
    )


def describe(converted: Converted) -> str:
    lines = [
        f"{'failed' if name in converted.refused else 'ok':8}{name}: drops {', '.join(dropped) or 'nothing'}"
        for name, dropped in converted.dropped.items()
    ]
    reasons = [f"        {tool}: {why}" for one in converted.refused.values() for tool, why in one.items()]
    return "\n".join([*lines, *reasons])
