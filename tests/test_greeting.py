"""The greeting: a person at a terminal reads it, and nobody else does."""

import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE

COMMAND = Path(sysconfig.get_path("scripts"), "bridgehead.exe" if sys.platform == "win32" else "bridgehead")

SERVING = b"info  serving "
"""What the log says once a signal ends the host in good order."""


@contextmanager
def terminal(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start the command in a terminal of its own."""
    ours, theirs = os.openpty()
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    with subprocess.Popen(
        [str(COMMAND), *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - no threads yet
    ) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            process.send_signal(signal.SIGTERM)
            with suppress(OSError):  # the process has closed its end; until then its log needs a reader
                while os.read(ours, 4096):
                    pass
            process.wait(PATIENCE)
            os.close(ours)


def read_lines(terminal: int, count: int, last: bytes = b"") -> list[str]:
    """Read as many lines, and on until the log has said `last`."""
    said = b""
    while said.count(b"\n") < count or last not in said:
        said += os.read(terminal, 4096)
    return said.decode().splitlines()[:count]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pty")
def test_a_bridge_started_by_hand_says_that_it_waits_for_a_client(tmp_path: Path) -> None:
    with terminal(tmp_path, "aoc") as (_, shown):
        lines = read_lines(shown, 4)

    assert "Advent of Code, waiting for an MCP client on standard input." in lines[0]
    assert "bridgehead install CLIENT aoc" in lines[1]
    assert "bridgehead tools aoc" in lines[2]
    assert lines[3] == "Press Ctrl+C to stop."


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pty")
def test_a_host_says_where_it_is_and_how_to_connect(tmp_path: Path) -> None:
    with terminal(tmp_path, "serve", "--port", "0", "--bridges", "aoc") as (_, shown):
        lines = read_lines(shown, 4, SERVING)

    address = lines[0].rpartition(" ")[2].removesuffix("/mcp")
    assert lines[0].endswith(f"serves aoc at {address}/mcp")
    assert lines[1] == f"Connect a client: bridgehead install CLIENT aoc --url {address} --no-token"
    assert lines[2] == f"Look at it:       {address}/"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pty")
def test_a_host_of_a_file_says_how_to_connect_to_its_bridge(tmp_path: Path) -> None:
    text = 'from bridgehead.mcp import Bridge\nmine = Bridge("weather", "1")\n'
    (tmp_path / "server.py").write_text(text, encoding="utf-8")
    with terminal(tmp_path, "serve", str(tmp_path / "server.py"), "--port", "0") as (_, shown):
        lines = read_lines(shown, 4, SERVING)

    address = lines[0].rpartition(" ")[2].removesuffix("/mcp")
    assert lines[1].endswith(f"--url {address}/weather/mcp --name weather --no-token")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pty")
def test_a_host_of_a_team_says_an_address_that_can_be_connected_to(tmp_path: Path) -> None:
    add = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    subprocess.run([str(COMMAND), "token", "add", "alice"], env=add, check=True, capture_output=True)
    with terminal(tmp_path, "serve", "--port", "0", "--host", "0.0.0.0") as (_, shown):  # noqa: S104 - the point
        lines = read_lines(shown, 4, SERVING)

    assert "CLIENT --url http://localhost:" in lines[1]
    assert "--no-token" not in lines[1]
    assert "http://localhost:" in lines[2]
    assert lines[3] == "From another machine, use this machine's name or address instead of localhost."


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pty")
def test_a_bridge_under_development_ends_with_ctrl_c(tmp_path: Path) -> None:
    text = 'from bridgehead.mcp import Bridge\nmine = Bridge("weather", "1")\n'
    (tmp_path / "server.py").write_text(text, encoding="utf-8")
    with terminal(tmp_path, "dev", "server.py") as (process, shown):
        assert read_lines(shown, 1, last=b"--inspect")[0].startswith("Watching ")
        process.send_signal(signal.SIGINT)
        status = process.wait(PATIENCE)
        os.set_blocking(shown, False)
        rest = b""
        with suppress(OSError):  # nothing more, or the end of the terminal
            while more := os.read(shown, 4096):
                rest += more

    assert (status, [line for line in rest.splitlines() if b"Ctrl+C" not in line and line]) == (0, [])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pty")
def test_a_list_of_clients_that_is_too_wide_has_the_files_below(tmp_path: Path) -> None:
    with terminal(tmp_path, "install", "--list") as (_, shown):
        lines = read_lines(shown, 2)

    assert lines[0].split() == ["claude-desktop", "not", "found"]
    assert lines[1].startswith("    /")
    assert lines[1].endswith("claude_desktop_config.json")


def test_a_client_that_starts_a_bridge_sees_no_greeting(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(COMMAND), "aoc"],
        input=b"",
        capture_output=True,
        check=True,
        timeout=PATIENCE,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
    )

    assert b"Ctrl+C" not in done.stdout + done.stderr
