"""Gateway: who reaches the bridge, and that nothing is left of it."""

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

from bridgehead.aoc.bench.demo import make_puzzles
from bridgehead.aoc.bench.demo_agent import Server
from bridgehead.aoc.bench.gateway import Gateway
from tests.support.waiting import PATIENCE


def settings(tmp_path: Path) -> dict[str, str]:
    make_puzzles(tmp_path / "data", [1])
    return {
        **os.environ,
        "AOC_DATA_DIR": str(tmp_path / "data"),
        "BRIDGEHEAD_STATE_DIR": str(tmp_path / "state"),
    }


def test_a_relay_is_an_mcp_server_for_whoever_starts_it(tmp_path: Path) -> None:
    with Gateway(settings(tmp_path), tmp_path) as gateway:
        server = Server(gateway.server_command)
        tools = [tool["name"] for tool in server.request("tools/list", {})["tools"]]
        started: Any = server.call("start_attempt", day=1, phase=1, llm_name="x")
        server.close()

    assert "start_attempt" in tools
    assert started["input"] == "200000\n"


def test_without_the_secret_there_is_no_bridge(tmp_path: Path) -> None:
    with Gateway(settings(tmp_path), tmp_path) as gateway:
        port = int(gateway.server_command[-2])
        for greeting in (b"wrong\n", b"x" * 100):
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
                connection.sendall(greeting + b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
                try:
                    heard = connection.recv(100)
                except ConnectionError:
                    heard = b""
                assert heard == b""


def test_when_the_run_ends_an_agent_that_stays_hears_nothing_more(tmp_path: Path) -> None:
    with Gateway(settings(tmp_path), tmp_path) as gateway:
        relay = subprocess.Popen(gateway.server_command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert relay.stdin is not None
        assert relay.stdout is not None
        relay.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n")
        relay.stdin.flush()
        assert b'"id":1' in relay.stdout.readline()
    with relay.stdin, relay.stdout:
        assert relay.wait(PATIENCE) == 0
