"""The far side of both measurements: a process that dials in, keeps what is pushed, and does no more.

Run as `python -m bench.bitburner.far_side URL`. Both the bridge and the bare exchange ask the same process.
Files below foreign/ hold something else each time they are read, as if the player had changed them.
"""

import asyncio
import random
import sys

import msgspec
from websockets.asyncio.client import connect

FILES, TOTAL_BYTES = 1000, 7_500_000
SMALL = "export async function main(ns) { ns.tprint('hi'); }\n"


def all_files() -> bytes:
    """Make scripts in 1,000 files, with the line ends and quotes that JSON has to escape."""
    draw = random.Random(4)  # noqa: S311 - the same files in every run
    line = 'await ns.sleep(200); ns.print("server", target, 17);\n'
    each = TOTAL_BYTES // FILES
    files = []
    for number in range(FILES):
        body = (f"// {draw.random()}\n" + line * (each // len(line) + 1))[:each]
        files.append({"filename": f"scripts/{number:04}.js", "content": body})
    return msgspec.json.encode(files)


class Params(msgspec.Struct, frozen=True):
    filename: str = ""
    content: msgspec.Raw = msgspec.Raw()


class Asked(msgspec.Struct):
    id: int
    method: str
    params: Params = Params()


async def main(url: str) -> None:
    """Answer until the connection ends."""
    results = {
        "getAllFiles": all_files(),
        "pushFile": b'"OK"',
        "calculateRam": b"1.6",
        "getDefinitionFile": b'"export interface NS {}"',
    }
    files: dict[str, bytes] = {"a.js": msgspec.json.encode(SMALL)}
    decode = msgspec.json.Decoder(Asked).decode
    async with connect(url, max_size=None, compression=None, ping_interval=None, proxy=None) as socket:
        async for frame in socket:
            asked = decode(frame)
            name, member = asked.params.filename, b"result"
            if asked.method == "getFile":
                found = b'"%d"' % asked.id if name.startswith("foreign/") else files.get(name)
                if found is None:
                    member, found = b"error", b'"File doesn\'t exist"'
            else:
                found = results[asked.method]
            if asked.method == "pushFile":
                files[name] = bytes(asked.params.content)
            await socket.send(b'{"jsonrpc":"2.0","%b":%b,"id":%d}' % (member, found, asked.id), text=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
