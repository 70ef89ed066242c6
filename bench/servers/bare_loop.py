"""The floor for stdio: a loop over stdin with the standard library's json, and nothing else."""

import json
import sys
from typing import Any

INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "echo", "version": "1.0.0"},
}


def result(message: dict[str, Any]) -> dict[str, Any]:
    """Say what this message is answered with."""
    if message["method"] == "initialize":
        return INITIALIZED
    text = message["params"]["arguments"]["text"]
    return {"content": [{"type": "text", "text": text}]}


def main() -> None:
    """Answer line after line until stdin ends."""
    read, write, flush = sys.stdin.buffer.readline, sys.stdout.buffer.write, sys.stdout.buffer.flush
    while line := read():
        message = json.loads(line)
        if "id" not in message:
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result(message)}
        write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
        flush()


if __name__ == "__main__":
    main()
