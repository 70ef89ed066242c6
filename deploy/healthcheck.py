"""Tells Docker whether the host in this container answers: exit status 0 if it does, 1 if not."""

# ruff: noqa: INP001 - a single file, not a package

import os
import ssl
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection

SECONDS = 4
FINE = 200


def main() -> int:
    """Ask the host how it is."""
    port = int(os.environ.get("MCP_SERVER_PORT") or 3000)
    if os.environ.get("BRIDGEHEAD_TLS_CERT"):
        # Its certificate names the public address, and this is the way to itself.
        trusting = ssl._create_unverified_context()  # noqa: S323, SLF001
        connection: HTTPConnection = HTTPSConnection("127.0.0.1", port, timeout=SECONDS, context=trusting)
    else:
        connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", "/healthz")
        return 0 if connection.getresponse().status == FINE else 1
    except (OSError, HTTPException) as failure:
        sys.stderr.write(f"the host does not answer on port {port}: {failure}\n")
        return 1
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
