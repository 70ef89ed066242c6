"""The busy bridge over HTTP: `python -m tests.support.http_bridge PORT '{"sessions": 4}'`."""

import sys

import msgspec

from bridgehead.mcp import Limits
from bridgehead.mcp.http import application, run
from tests.support.busy_bridge import make_bridge


def main() -> None:
    """Serve a loopback port with the limits of the second argument."""
    limits = msgspec.json.decode(sys.argv[2], type=Limits)
    bridge, _ = make_bridge()
    run(application(bridge, limits=limits), port=int(sys.argv[1]))


if __name__ == "__main__":
    main()
