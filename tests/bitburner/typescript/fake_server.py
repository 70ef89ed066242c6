"""A language server to test against: a real process that finds every word "wrong" in a text.

Owns how it misbehaves: what a text says, it does. `python -m bench.bitburner.checking` tries the real one.
"""

import sys
from pathlib import Path

PROGRAM = r"""
import json, os, re, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
text = ""
def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()
while True:
    line = sys.stdin.buffer.readline()
    if not line:
        break
    sys.stdin.buffer.readline()
    message = json.loads(sys.stdin.buffer.read(int(line.split(b":")[1])))
    if message.get("method") == "initialize":
        send({"method": "window/logMessage", "params": {}})
        send({"id": "own", "method": "workspace/configuration", "params": {"items": [{}, {}]}})
        send({"id": message["id"], "result": {}})
    elif message.get("id") == "own":
        assert message["result"] == [None, None]
    elif message.get("method") == "textDocument/didOpen":
        text = message["params"]["textDocument"]["text"]
        open("received", "a", encoding="utf-8").write(text + "\0")
    elif message.get("method") == "textDocument/diagnostic":
        if "hang" in text:
            open("hanging", "w").write(str(os.getpid()))
            while True:
                time.sleep(60)
        if "crash" in text:
            sys.exit(3)
        if "garbage" in text:
            sys.stdout.buffer.write(b"Content-Length: 3\r\n\r\n{]}")
            sys.stdout.buffer.flush()
            continue
        items = []
        for number, line in enumerate(text.split("\n")):
            for match in re.finditer("wrong", line):
                units = [len(line[:at].encode("utf-16-le")) // 2 for at in match.span()]
                start, end = ({"line": number, "character": one} for one in units)
                items.append({"range": {"start": start, "end": end}, "code": 2304, "severity": 1,
                              "message": "Cannot find name 'wrong'."})
        send({"id": message["id"], "result": {"kind": "full", "items": items}})
"""


def write_program(path: Path) -> Path:
    """Write the program; it needs no PATH, because the server gets no environment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable} -S\n{PROGRAM}")
    path.chmod(0o700)
    return path
