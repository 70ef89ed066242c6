"""The far side of both measurements: a process that dials in and answers from prepared bytes, doing no more.

Run as `python -m bench.bitburner.far_side URL`. Both the bridge and the bare exchange ask the same process.
"""

import asyncio
import random
import sys

import msgspec
from websockets.asyncio.client import connect

FILES, TOTAL_BYTES = 1000, 50_000_000
SMALL = "export async function main(ns) { ns.tprint('hi'); }\n"


def all_files() -> bytes:
    """Make 50 MB of scripts in 1,000 files, with the line ends and quotes that JSON has to escape."""
    draw = random.Random(4)  # noqa: S311 - the same files in every run
    line = 'await ns.sleep(200); ns.print("server", target, 17);\n'
    each = TOTAL_BYTES // FILES
    files = []
    for number in range(FILES):
        body = (f"// {draw.random()}\n" + line * (each // len(line) + 1))[:each]
        files.append({"filename": f"scripts/{number:04}.js", "content": body})
    return msgspec.json.encode(files)


class Asked(msgspec.Struct):
    id: int
    method: str


async def main(url: str) -> None:
    """Answer until the connection ends."""
    results = {
        "getAllFiles": all_files(),
        "getFile": msgspec.json.encode(SMALL),
        "pushFile": b'"OK"',
        "calculateRam": b"1.6",
        "getDefinitionFile": b'"export interface NS {}"',
    }
    decode = msgspec.json.Decoder(Asked).decode
    async with connect(url, max_size=None, compression=None, ping_interval=None, proxy=None) as socket:
        async for frame in socket:
            asked = decode(frame)
            await socket.send(
                b'{"jsonrpc":"2.0","result":%b,"id":%d}' % (results[asked.method], asked.id), text=True
            )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
