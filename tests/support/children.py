"""Child processes that tests start: what of the environment they get, and what one has imported."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from tests.support.waiting import PATIENCE

_INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}


def unmeasured() -> dict[str, str]:
    """Return the environment without what would measure a child: it loads modules, opens files and writes."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COV")}


def probe_imports(*command: str, environment: Mapping[str, str]) -> tuple[dict[str, Any], frozenset[str]]:
    """Start a server that then lists its modules on standard error; return its first answer, and them."""
    with subprocess.Popen(
        [sys.executable, "-P", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(_INITIALIZE) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        modules = process.stderr.readline().split()
        process.stdin.close()
        process.stderr.read()
        assert process.wait(timeout=PATIENCE) == 0
    return answer["result"], frozenset(modules)
