"""Skills of the conformance server."""

from pathlib import Path

from bridgehead.mcp import add_skill
from tests.conformance.bridge import bridge

add_skill(bridge, Path(__file__).parent / "skill_folders" / "brew-tea")
