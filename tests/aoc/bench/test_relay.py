"""Relay: bytes go both ways until either side ends."""

import socket
import subprocess
import sys

from bridgehead.aoc.bench import relay
from tests.support.waiting import PATIENCE


def test_bytes_go_both_ways_and_the_secret_comes_first() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        command = [sys.executable, "-I", relay.__file__, str(listener.getsockname()[1]), "secret"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        connection, _ = listener.accept()
        with connection, connection.makefile("rwb") as bench:
            assert bench.readline() == b"secret\n"
            assert process.stdin is not None
            process.stdin.write(b"request\n")
            process.stdin.close()
            assert bench.read() == b"request\n"
            bench.write(b"x" * 300_000)
        assert process.stdout is not None
        assert len(process.stdout.read()) == 300_000
        process.stdout.close()
        assert process.wait(PATIENCE) == 0


def test_without_a_bench_it_ends_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    done = subprocess.run(
        [sys.executable, "-I", relay.__file__, str(port), "x"],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode != 0
