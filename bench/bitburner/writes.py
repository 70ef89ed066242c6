"""What a write costs beside the bare exchange, with few and with many kept versions."""

import asyncio
import hashlib
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import msgspec

from bench.bitburner.exchanges import bare_socket, served
from bench.bitburner.far_side import SMALL

STORES = (0, 2_000, 20_000)
WRITES = 60


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
def filled(count: int) -> Iterator[str]:
    """Make a state folder with as many versions."""
    with tempfile.TemporaryDirectory() as state:
        fill(Path(state, "bitburner", "backups"), count)
        yield state


async def one_after_the_other(count: int, suffix: str) -> tuple[float, float]:
    """Return the medians of a bare exchange and of `write_file`, in turns, in milliseconds."""
    with filled(count) as state:
        async with (
            bare_socket() as socket,
            served(state, BITBURNER_BACKUP_MAX_FILES=str(max(count, 2000))) as call,
        ):
            taken: dict[str, list[float]] = {"bare": [], "ours": []}
            for number in range(WRITES + 5):
                content = f"{SMALL}// {number}\n"
                name = f"new/{number}{suffix}"
                began = time.perf_counter()
                params = {"filename": name, "content": content, "server": "home"}
                request = {"jsonrpc": "2.0", "id": number, "method": "pushFile", "params": params}
                await socket.send(msgspec.json.encode(request), text=True)
                assert msgspec.json.decode(await socket.recv(decode=False))["result"] == "OK"
                between = time.perf_counter()
                answer = await call("write_file", filename=name, content=content)
                ended = time.perf_counter()
                assert answer.text.startswith("OK")
                if number >= 5:
                    taken["bare"].append(between - began)
                    taken["ours"].append(ended - between)
    return median(taken["bare"]) * 1000, median(taken["ours"]) * 1000


def main() -> None:
    """Print one line for each store: `python -m bench.bitburner.writes`."""
    for suffix in sys.argv[1:] or [".txt"]:
        for count in STORES:
            bare, ours = asyncio.run(one_after_the_other(count, suffix))
            print(
                f"{suffix}  {count:>6} versions  bare {bare:.2f} ms  write {ours:.2f} ms  {ours / bare:.1f}x"
            )


if __name__ == "__main__":
    main()
