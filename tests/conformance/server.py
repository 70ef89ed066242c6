"""The conformance server: `python -m tests.conformance.server --port PORT` listens on loopback."""

import argparse
import importlib

from bridgehead.mcp.http import application, run
from tests.conformance.bridge import bridge

# Importing a part declares it.
PARTS = (
    "content_tools",
    "streaming_tools",
    "asking_tools",
    "input_tools",
    "task_tools",
    "resources",
    "prompts",
    "skills",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.server")
    parser.add_argument("--port", type=int, required=True)
    port = parser.parse_args().port
    for part in PARTS:
        importlib.import_module(f"tests.conformance.{part}")
    run(application(bridge, retry_ms=100), port=port)


if __name__ == "__main__":
    main()
