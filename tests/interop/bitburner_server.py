"""The bitburner bridge for a client that starts it with arguments only: `PORT STATE_FOLDER`."""

import sys

from bridgehead.bitburner.bridge import manifest
from bridgehead.runtime.manifest import serve


def main(port: str, state: str) -> int:
    return serve(
        manifest,
        {
            "BITBURNER_LISTEN": f"127.0.0.1:{port}",
            "BRIDGEHEAD_STATE_DIR": state,
            "BITBURNER_CONNECT_WAIT_MS": "15000",
            "MCP_LOG_LEVEL": "error",
        },
    )


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
