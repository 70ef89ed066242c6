"""The busy bridge over stdio: `python -m tests.support.stdio_bridge '{"requests_in_flight": 4}' [uvloop]`."""

import sys

import msgspec

from bridgehead.mcp import Limits
from bridgehead.mcp.stdio import run
from tests.support.busy_bridge import make_bridge


def main() -> int:
    """Serve standard input and output with the limits, and on the loop, that the arguments name."""
    limits = msgspec.json.decode(sys.argv[1], type=Limits) if len(sys.argv) > 1 else None
    bridge, _ = make_bridge()
    if "uvloop" not in sys.argv:
        return run(bridge, limits=limits)
    import uvloop

    return run(bridge, limits=limits, loop_factory=uvloop.new_event_loop)


if __name__ == "__main__":
    raise SystemExit(main())
