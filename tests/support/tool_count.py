"""Counted tokens of the tool lists: `python -m tests.support.tool_count` counts them again.

`tests/tool_costs.json` has the o200k tokens of each tool's name, description and input schema: `before` is
version 0.2 (null for a new tool), `tokens` is today, `digest` is that of the text that was counted.
"""

import json
import sys
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypedDict

from bridgehead.commands.tools import encode_listings
from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import make_bridge
from tests.agents.table import count_tokens
from tests.interop.node import node

COSTS = Path(__file__).parents[1] / "tool_costs.json"
BRIDGES = ("aoc", "bitburner", "mercury")
OPTIONAL = {
    "mercury": {"MERCURY_EMBEDDING_MODEL": "mercury/an-embedding-model", "MERCURY_FINE_TUNING": "mercury"}
}
"""Settings of the tools that are not offered without them."""


class Cost(TypedDict):
    """What one tool costs a model."""

    before: int | None
    tokens: int
    digest: str


class Listing(NamedTuple):
    """What a model is shown of one tool."""

    text: str
    is_optional: bool

    @property
    def digest(self) -> str:
        return sha256(self.text.encode()).hexdigest()[:12]


def read_costs() -> dict[str, dict[str, Cost]]:
    """Return the counted tokens by bridge and tool."""
    costs: dict[str, dict[str, Cost]] = json.loads(COSTS.read_text(encoding="utf-8"))
    return costs


def list_tools(bridge: str, state: Path) -> dict[str, Listing]:
    """Return what a model is shown of each tool of a bridge, of those that need a setting too."""

    def offered(environment: Mapping[str, str]) -> dict[str, bytes]:
        made = make_bridge(plugins.load(bridge), {"BRIDGEHEAD_STATE_DIR": str(state), **environment})
        return encode_listings(
            {name: tool for name, tool in made.tools.items() if tool.visible_to == "everyone"}
        )

    always, every = offered({}), offered(OPTIONAL.get(bridge, {}))
    return {name: Listing(text.decode(), name not in always) for name, text in (every | always).items()}


def main() -> None:
    """Count again and write the file; the figures of version 0.2 stay."""
    known, counted = read_costs(), {}
    with tempfile.TemporaryDirectory() as state:
        for bridge in BRIDGES:
            listings = list_tools(bridge, Path(state))
            counts = count_tokens([listing.text for listing in listings.values()], node())
            counted[bridge] = {
                name: Cost(
                    before=known[bridge][name]["before"] if name in known[bridge] else None,
                    tokens=tokens,
                    digest=listing.digest,
                )
                for (name, listing), tokens in zip(listings.items(), counts, strict=True)
            }
            needed = sum(
                counted[bridge][name]["tokens"] for name, one in listings.items() if not one.is_optional
            )
            sys.stdout.write(f"{bridge}: {needed:,} tokens\n")
    COSTS.write_text(json.dumps(counted, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
