"""The command `python -m bench.host.shapes`: generated calls beside an honest client, who must not wait.

Any JSON shape in any place of any tool: nested lists, long numbers, texts that become four times as wide. A
call comes from its number alone, so a run from the same number on sends the same calls. Two connections send
each call at once. The exit status is 1 where in each of three tries the honest client waits 250 ms longer
than alone, the memory of the host rises by more than ten times the bytes sent, or an answer is an error of
the server's own.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.host.calls import STATELESS, post
from bench.host.worst import (
    BASELINE_SECONDS,
    META,
    MOST_MS,
    SETTLE_SECONDS,
    Attacker,
    HonestClient,
    ask,
    fill,
    serving,
    write_request,
)
from bench.load import complete
from bench.process import Process, RunQueue

SEED, CALLS, TRIES = 20261119, 250, 3
AT_ONCE = 2
MOST_MEMORY = 10.0
"""Bytes of memory for each byte sent."""
SLACK_MB = 20.0
"""What the allocator may keep beside that, for the smaller calls."""

BODY_BYTES = 10_000_000
"""Two of these are under way at once."""
_MANY = 49_000
"""As many values as a message may have, nearly."""
_PIECES = (
    *("x", "é", "名", "\U0001f600", " ", "../", "a=b&", "<b>&amp;</b>", "*/ // ` ${"),
    *("\\n", '\\"', "\\\\", "\\u0000", "\\u0041", "\\ud83d\\ude00"),
    *("[{,", "[" * 5000, "9" * 4000, "line of text\\n", "const x = [1, 2, {a: 3}];\\n"),
)
Draw = random.Random


def _text(draw: Draw, size: int) -> str:
    """A text of one or two pieces, and often one character that makes every other wider."""
    piece = "".join(draw.choices(_PIECES, k=draw.choice((1, 1, 2))))
    wide = draw.choice(("", "", "é", "名", "\U0001f600"))
    return f'"{piece * max(1, size // len(piece.encode()))}{wide}"'


def _number(draw: Draw, digits: int) -> str:
    return draw.choice(("", "-")) + "7" * digits + draw.choice(("", ".5", "e9", ".000001e-300", "e400"))


def _nested(draw: Draw, depth: int) -> str:
    begin, end = draw.choice((("[", "]"), ('{"a":', "}"), ('[{"b":[', "]}]"), ("[0,", "]"), ("[1,[],", "]")))
    return begin * depth + draw.choice(("[]", "{}", "0", '""', "null")) + end * depth


def _members(draw: Draw, count: int, width: int) -> str:
    return "{" + ",".join(f'"{"k" * width}{number}":{draw.choice("01")}' for number in range(count)) + "}"


def _items(draw: Draw, size: int) -> str:
    """A list that repeats one small value: as many as fit into the size, or as may be sent."""
    one = draw.choice(
        (
            lambda: _nested(draw, draw.choice((1, 2, 30, 500, 900))),
            lambda: _number(draw, draw.choice((1, 15, 19, 40, 400, 4000, 4400))),
            lambda: _text(draw, draw.choice((0, 10, 200))),
            lambda: draw.choice(("{}", "[]", '{"a":1}', "null", "true", "-0.0", '{"":{}}')),
        )
    )()
    fitting = size // (len(one.encode()) + 1)
    built = sum(map(one.count, "[{,")) + 1
    return f"[{','.join([one] * max(1, draw.choice((fitting, min(fitting, _MANY // built)))))}]"


def shape(draw: Draw, size: int) -> str:
    """One JSON value of about a size."""
    kinds: tuple[Callable[[], str], ...] = (
        lambda: _text(draw, size),
        lambda: _items(draw, size),
        lambda: _items(draw, size),
        lambda: _nested(draw, min(size // 2, draw.choice((900, 5000, 1_000_000)))),
        lambda: _members(draw, draw.choice((1000, _MANY)), draw.choice((0, 30, 200))),
        lambda: _number(draw, draw.choice((4000, 400_000))),
        lambda: f"[{_items(draw, size // 2)},{_text(draw, size // 2)}]",
    )
    return draw.choice(kinds)()


@dataclass(frozen=True)
class Shaped:
    """A generated call."""

    tool: str
    place: str
    body: bytes


def make_call(number: int, tools: dict[str, Any], meta: dict[str, Any]) -> Shaped:
    """Generate the call of a number for one of some tools, given with the schemas of their input."""
    draw = Draw(number)
    tool = draw.choice(sorted(tools))
    names = [*tools[tool].get("properties", {}), "unknown"]
    value = shape(draw, draw.choice((60_000, 1_000_000, *[BODY_BYTES] * 4)))
    place = draw.choice((*["argument"] * 8, "arguments", "params", "id", "method"))
    params, arguments = {"_meta": meta, "name": tool}, {}
    head: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    mark = "\0shape\0"
    if place == "argument":
        place = draw.choice(names)
        arguments = {name: _plain(schema) for name, schema in tools[tool].get("properties", {}).items()}
        if draw.random() < 0.5:
            arguments = {name: arguments[name] for name in tools[tool].get("required", ())}
        arguments[place] = draw.choice((mark, mark, [mark], {"a": mark}))
    elif place == "params":
        params[draw.choice(("inputResponses", "requestState", "_meta", "other"))] = mark
    elif place != "arguments":
        head[place] = mark
    params["arguments"] = mark if place == "arguments" else arguments
    text = json.dumps({**head, "params": params}, ensure_ascii=False)
    return Shaped(tool, place, text.replace(json.dumps(mark), value).encode("utf-8", "surrogatepass"))


def _plain(schema: dict[str, Any]) -> Any:
    """The simplest value that a schema takes, as far as that is easy to see."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    kind = next((one for one in kind if one != "null"), "null") if isinstance(kind, list) else kind
    plain = {"integer": schema.get("minimum", 1), "number": 1, "boolean": False, "array": [], "object": {}}
    return plain.get(kind, "x")


# --- the attack: a process of its own ---------------------------------------------------------------------


@cache
def list_tools(port: int, token: str) -> dict[str, Any]:
    """List the tools that a token opens, with the schemas of their input."""
    listed = json.loads(ask(port, write_request(port, token, "tools/list", {})))
    return {tool["name"]: tool["inputSchema"] for tool in listed["result"]["tools"]}


def attack_on_demand(port: int) -> None:
    """Read a token and a number from each line, send that call, and print 0 if an answer was a failure."""
    for line in sys.stdin:
        token, number, _ = line.split()
        shaped = make_call(int(number), list_tools(port, token), META)
        headers = f"Authorization: Bearer {token}\r\nMCP-Protocol-Version: {STATELESS}\r\n"
        headers += f"Mcp-Method: tools/call\r\nMcp-Name: {shaped.tool}\r\n"
        request = post("/mcp", port, headers.encode(), shaped.body)
        print(asyncio.run(_send(port, request)), flush=True)


async def _send(port: int, request: bytes) -> int:
    async def send() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(request)
            answer = b""
            while not complete(answer) and (piece := await reader.read(1024 * 1024)):
                answer += piece
            return answer
        finally:
            writer.close()

    answers = await asyncio.gather(*(send() for _ in range(AT_ONCE)))
    failed = [
        one for one in answers if not one.startswith((b"HTTP/1.1 2", b"HTTP/1.1 4")) or b"-32603" in one
    ]
    for answer in failed:
        print(answer[:500], file=sys.stderr)
    return int(not failed)


# --- the run ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """What one call did."""

    longest_ms: float
    grown_mb: float
    is_answered: bool

    def list_faults(self, baseline: float, body: int) -> list[str]:
        """Say what did not hold; nothing if all of it did."""
        faults = []
        if self.longest_ms > baseline + MOST_MS:
            faults.append(f"another client waited {self.longest_ms:.0f} ms")
        if self.grown_mb > SLACK_MB + MOST_MEMORY * AT_ONCE * body / 1e6:
            faults.append(f"memory rose by {self.grown_mb:.0f} MB")
        if not self.is_answered:
            faults.append("the answer was a failure of the server")
        return faults


def _try(process: Process, client: HonestClient, attacker: Attacker, token: str, number: int) -> Trial:
    before = process.memory()
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")  # forgets the peak
    attacker.start(token, str(number), 0)
    longest = client.ask_until(attacker.is_over)
    status = Path(f"/proc/{process.pid}/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    trial = Trial(longest, peak - before, bool(attacker.count_answered()))
    deadline = time.monotonic() + SETTLE_SECONDS
    while process.memory() > before * 1.1 and time.monotonic() < deadline:
        time.sleep(0.05)
    return trial


def measure(folder: Path, numbers: range) -> list[str]:
    """Send every call; returns what did not hold in each of its tries."""
    faults = []
    with serving(folder) as (process, port, tokens):
        fill(port, tokens.secrets["honest"])
        client = HonestClient(port, tokens.secrets["honest"], RunQueue(process.pid, os.getpid()))
        end = time.monotonic() + BASELINE_SECONDS
        baseline = client.ask_until(lambda: time.monotonic() > end)
        print(f"alone, the longest wait was {baseline:.0f} ms")
        with closing(Attacker(port, "bench.host.shapes")) as attacker:
            for number in numbers:
                token = tokens.secrets["writer" if number % 2 else "reader"]
                shaped = make_call(number, list_tools(port, token), META)
                broken: list[str] = []
                for _ in range(TRIES):
                    trial = _try(process, client, attacker, token, number)
                    broken = trial.list_faults(baseline, len(shaped.body))
                    print(
                        f"{number}: `{shaped.tool}`, {shaped.place}, {len(shaped.body) / 1e6:.1f} MB: "
                        f"{trial.longest_ms:.0f} ms, {trial.grown_mb:+.0f} MB {'; '.join(broken)}",
                        flush=True,
                    )
                    if not broken:
                        break
                else:
                    faults.append(f"{number}: `{shaped.tool}`, {shaped.place}: {'; '.join(broken)}")
    return faults


def main() -> int:
    """Measure, print, and fail where something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m bench.host.shapes", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="the number of the first call")
    parser.add_argument("--calls", type=int, default=CALLS, help=f"{CALLS} by default")
    parser.add_argument("--attack", type=int, metavar="PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        attack_on_demand(options.attack)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if (os.cpu_count() or 1) > 1:  # everything but the host, which has the last core
        os.sched_setaffinity(0, range((os.cpu_count() or 1) - 1))
    with tempfile.TemporaryDirectory() as folder:
        faults = measure(Path(folder), range(options.seed, options.seed + options.calls))
    print("Reached." if not faults else "Not reached:\n" + "\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
