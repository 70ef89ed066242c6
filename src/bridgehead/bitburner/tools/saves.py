"""Saves: the tool that stores the player's save file on this machine."""

from __future__ import annotations

import asyncio
import os
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from time import gmtime, strftime

from msgspec import Struct

from bridgehead.mcp import Answer, Context, NoArguments
from bridgehead.runtime import directories, durable
from bridgehead.runtime.errors import StorageError

from ..errors import InvalidReply
from ..game.remote import Save
from ..session import Session
from ..settings import BitburnerSettings
from .declaring import ToolDeclarer

_GZIP = b"\x1f\x8b"
_MAX_SAVES = 20
"""Save files that are kept; older ones are deleted."""
_SUFFIX = ".json.gz"


class SavedGame(Struct):
    """Output of backup_save."""

    path: str
    bytes: int
    identifier: str


def declare(tools: ToolDeclarer) -> None:
    """Declare the tools of this module."""
    tools.write_tool(
        "Back up the save",
        "Keep the player's save file on this machine as .json.gz, which the game can import. Answers its "
        "path. Needs Bitburner 2.8 or newer.",
        destructive=False,
        idempotent=False,
        may_take_long=True,
    )(backup_save)


async def backup_save(_: NoArguments, ctx: Context[Session]) -> Answer[SavedGame]:
    """Keep the save file."""
    save = await ctx.state.remote.get_save()
    data = packed(save)
    # The identifier comes from the game and becomes part of a file name.
    plain = "".join(c for c in save.identifier if c.isascii() and (c.isalnum() or c in "-_"))[:40] or "save"
    name = f"{strftime('%Y%m%dT%H%M%SZ', gmtime())}-{plain}{_SUFFIX}"
    path = await asyncio.to_thread(_store, ctx.state.settings, name, data)
    return Answer(f"Saved {len(data)} bytes to {path}.", SavedGame(str(path), len(data), save.identifier))


def packed(save: Save) -> bytes:
    """Return a save as the bytes of a .json.gz file."""
    import gzip

    try:
        # A binary save is gzip already, one character per byte; others are base64 of the plain JSON.
        if save.binary:
            data = save.save.encode("latin-1")
        else:
            data = gzip.compress(b64decode(save.save, validate=True))
    except ValueError:
        raise InvalidReply("getSaveFile", "the save is neither bytes nor base64") from None
    if not data.startswith(_GZIP):
        raise InvalidReply("getSaveFile", "the save is not gzip")
    return data


def _store(settings: BitburnerSettings, name: str, data: bytes) -> Path:
    place = directories.make_private(settings.saves_folder)
    try:
        durable.replace(place / name, data)
        # Names begin with the UTC time, so they sort by age.
        for old in sorted(place.glob(f"*{_SUFFIX}"))[:-_MAX_SAVES]:
            with suppress(PermissionError):  # Windows: another process reads it; the next save prunes it
                old.unlink(missing_ok=True)
    except OSError as failure:
        raise StorageError(
            f"The save cannot be written to {place}: {failure.strerror or failure}.",
            next_step="Make room, or set BITBURNER_BACKUP_DIR to another folder.",
            path=str(place),
        ) from failure
    return place / os.fspath(name)
