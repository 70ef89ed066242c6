"""Save: the save file of a simulated game: gzip, told as a text of one character a byte."""

from __future__ import annotations

import gzip

import msgspec

from .world import World

IDENTIFIER = "simulated-player"


def save(world: World) -> dict[str, object]:
    """Return the world as the game would save it."""
    content = {
        "ctor": "BitburnerSaveObject",
        "data": {"identifier": IDENTIFIER, "generation": world.generation, "servers": world.servers},
    }
    packed = gzip.compress(msgspec.json.encode(content), compresslevel=6, mtime=0)
    return {"identifier": IDENTIFIER, "binary": True, "save": packed.decode("latin-1")}
