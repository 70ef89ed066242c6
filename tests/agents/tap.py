"""Tap: a stdio server, started through this file, with every line between it and its client in a log.

`python tap.py LOG COMMAND…`. Each line of the log is a JSON array of the direction ("in" is to the server)
and the message. Uses nothing but the standard library, and passes the lines on as they are.
"""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO


def pump(source: IO[bytes], sink: IO[bytes], direction: str, log: IO[str], lock: threading.Lock) -> None:
    """Copy lines until the source ends, and then close the sink."""
    for line in source:
        with lock:
            log.write(f"{json.dumps([direction, line.decode()])}\n")
            log.flush()
        try:
            sink.write(line)
            sink.flush()
        except BrokenPipeError:
            break
    sink.close()


def main(log_path: str, *command: str) -> int:
    """Run the server; return its exit status."""
    with (
        Path(log_path).open("a", encoding="utf-8") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        lock = threading.Lock()
        reader = threading.Thread(
            target=pump, args=(sys.stdin.buffer, server.stdin, "in", log, lock), daemon=True
        )
        reader.start()
        pump(server.stdout, sys.stdout.buffer, "out", log, lock)
        return server.wait()


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
