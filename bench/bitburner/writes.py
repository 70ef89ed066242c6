"""What a write costs beside the bare exchange, with few and with many kept versions."""

import asyncio
import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from websockets.asyncio.server import ServerConnection

from bench.bitburner.exchanges import Call, bare_socket, served
from bench.bitburner.far_side import SMALL

STORES = (0, 2_000, 20_000)
KINDS: dict[str, Callable[[int], str]] = {
    "of a new file": lambda number: f"new/{number}.txt",
    "over the agent's own text": lambda number: f"own/{number % 100}.txt",
    "over the player's text": lambda number: f"foreign/{number}.txt",
    "of a new script, with its RAM and check": lambda number: f"new/{number}.js",
}
WRITES, WARM_UP = 200, 10
MEMORY = "/dev/shm"  # noqa: S108 - a disk that takes no time


def fill(folder: Path, count: int) -> None:
    """Put versions into an empty store, of as many files, as the bridge would have named them."""
    folder.mkdir(parents=True)
    for number in range(count):
        name = f"old/{number}.txt"
        key = hashlib.sha256(f"home\0{name}".encode()).hexdigest()[:16]
        version = {
            "server": "home",
            "filename": name,
            "at": 1_700_000_000 + number,
            "because": "write_file",
            "content": f"// {number}\n",
            "kind": "written",
        }
        path = folder / f"{1_700_000_000_000 + number * 1000:013d}-{number:08x}1-{key}.json"
        path.write_bytes(msgspec.json.encode(version))


@contextmanager
def filled(count: int, folder: str | None = None) -> Iterator[str]:
    """Make a state folder with as many versions."""
    with tempfile.TemporaryDirectory(dir=folder) as state:
        fill(Path(state, "bitburner", "backups"), count)
        yield state


async def one_after_the_other(
    call: Call, socket: ServerConnection, name: Callable[[int], str]
) -> tuple[float, float]:
    """Return the times of a bare exchange and of `write_file`, in turns, in milliseconds.

    Of the fastest tenth: what else runs on the machine makes the others slower by any factor.
    """
    taken: dict[str, list[float]] = {"bare": [], "ours": []}
    for number in range(WRITES + WARM_UP):
        content = f"{SMALL}// {number}\n"
        params = {"filename": name(number), "content": content, "server": "home"}
        request = {"jsonrpc": "2.0", "id": number, "method": "pushFile", "params": params}
        began = time.perf_counter()
        await socket.send(msgspec.json.encode(request), text=True)
        assert msgspec.json.decode(await socket.recv(decode=False))["result"] == "OK"
        between = time.perf_counter()
        answer = await call("write_file", filename=name(number), content=content)
        ended = time.perf_counter()
        assert answer.text.startswith("OK")
        if number >= WARM_UP:
            taken["bare"].append(between - began)
            taken["ours"].append(ended - between)
    bare, ours = (sorted(times)[len(times) // 10] for times in taken.values())
    return bare * 1000, ours * 1000


async def measure(count: int, folder: str | None) -> list[tuple[str, float, float]]:
    """Measure every kind of write with as many kept versions."""
    with filled(count, folder) as state:
        async with (
            bare_socket() as socket,
            served(state, BITBURNER_BACKUP_MAX_FILES=str(count + 2000)) as call,
        ):
            return [(title, *await one_after_the_other(call, socket, name)) for title, name in KINDS.items()]


def make_table() -> str:
    """Measure on the disk of TMPDIR and in memory, where there is a folder for that."""
    lines = [
        "| versions in | kept before | write | bare exchange | write_file | ratio |",
        "| --- | ---: | --- | ---: | ---: | ---: |",
    ]
    for where, folder in (("files", None), ("memory", MEMORY)):
        if folder is not None and not Path(folder).is_dir():
            continue
        for count in STORES:
            for title, bare, ours in asyncio.run(measure(count, folder)):
                lines.append(
                    f"| {where} | {count:,} | {title} | {bare:.2f} ms | {ours:.2f} ms | {ours / bare:.1f} |"
                )
    return "\n".join(lines)


if __name__ == "__main__":
    print(make_table())
