"""World: the state of a simulated game: servers, files with times, programs, running scripts."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Mapping
from zlib import crc32

import msgspec
from msgspec import Struct

from .paths import is_script

HOME = "home"
GENERATIONS = (2, 3)
SINCE_THIRD = frozenset({"getFileMetadata", "getAllFileMetadata"})
STARTER = {
    "early.js": """\
/** Takes what a server has, again and again. */
export async function main(ns) {
  const target = ns.args[0] ?? "n00dles";
  while (true) {
    await ns.weaken(target);
    await ns.hack(target);
  }
}
""",
    "lib/scout.js": """\
export async function main(ns) {
  ns.tprint(ns.scan("home"));
}
""",
}
"""What is on the home server unless a folder is named: a player's first scripts."""


class Times(Struct):
    """When a file was last read, last written and first written, in milliseconds since 1970."""

    atime: int
    mtime: int
    btime: int


class World:
    """The contents of one game. Tests read and change them as they like, also while the game runs."""

    def __init__(
        self,
        generation: int = 2,
        files: Mapping[str, Mapping[str, str]] | None = None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Make a world with these files, on their servers and home; without files, a fresh game."""
        if generation not in GENERATIONS:
            raise ValueError(f"There is no generation {generation!r} of the game; it is 2 or 3.")
        self.generation = generation
        self.is_second = generation == GENERATIONS[0]
        hosts = HOSTS if files is None else (HOME, *files)
        self.servers: dict[str, dict[str, str]] = {host: dict((files or {}).get(host, {})) for host in hosts}
        self.programs: dict[str, set[str]] = {HOME: {"NUKE.exe"}}
        self.running: set[tuple[str, str]] = set()
        """Server and path of each script that runs."""
        self.rooted = {HOME}
        self.purchased = {HOME}
        self._now = now
        self._start = self._milliseconds()
        self._times: dict[tuple[str, str], Times] = {}

    def knows(self, method: str) -> bool:
        """Return whether this generation of the game knows a method."""
        return not self.is_second or method not in SINCE_THIRD

    def host(self, name: str) -> str | None:
        """Return the host of a name or an IP address, both exact."""
        if name in self.servers:
            return name
        return next((host for host in self.servers if address(host) == name), None)

    def scripts(self, host: str) -> dict[str, str]:
        """Return the scripts of a host."""
        return {path: content for path, content in self.servers[host].items() if is_script(path)}

    def texts(self, host: str) -> dict[str, str]:
        """Return the other files that have contents."""
        return {path: content for path, content in self.servers[host].items() if not is_script(path)}

    def write(self, host: str, path: str, content: str) -> None:
        """Write a file, new or not."""
        times = self.times(host, path) if path in self.servers[host] else None
        now = self._milliseconds()
        self._times[host, path] = Times(now, now, times.btime if times else now)
        self.servers[host][path] = content

    def read(self, host: str, path: str) -> str | None:
        """Return the content of a file, or None."""
        content = self.servers[host].get(path)
        if content is not None:
            self.times(host, path).atime = self._milliseconds()
        return content

    def delete(self, host: str, path: str) -> None:
        """Delete an existing file."""
        del self.servers[host][path]
        self._times.pop((host, path), None)

    def times(self, host: str, path: str) -> Times:
        """Return the times of a file; initial files are as old as the world."""
        return self._times.setdefault((host, path), Times(self._start, self._start, self._start))

    def describe(self, host: str, path: str) -> dict[str, object]:
        """Return the metadata of a file."""
        return {"filename": path, **msgspec.to_builtins(self.times(host, path))}

    def _milliseconds(self) -> int:
        return int(self._now() * 1000)


_FRESH = """
home ecorp megacorp b-and-a blade nwo clarkinc omnitek 4sigma kuai-gong fulcrumtech fulcrumassets
stormtech defcomm infocomm helios vitalife icarus univ-energy titan-labs microdyne taiyang-digital
galactic-cyber aerocorp omnia zb-def applied-energetics solaris deltaone global-pharm nova-med zeus-med
unitalife lexo-corp rho-construction alpha-ent aevum-police rothman-uni zb-institute summit-uni syscore
catalyst the-hub computek netlink johnson-ortho n00dles foodnstuff sigma-cosmetics joesguns zer0
nectar-net neo-net silver-helix hong-fang-tea harakiri-sushi phantasy max-hardware omega-net
crush-fitness iron-gym millenium-fitness powerhouse-fitness snap-fitness run4theh111z I.I.I.I
avmnite-02h . CSEC The-Cave w0r1d_d43m0n darkweb
"""
HOSTS = tuple(_FRESH.split())


def address(host: str) -> str:
    """Return an IP address for a host: always the same one, unlike the game's random ones."""
    number = crc32(host.encode())
    return ".".join(str(number >> shift & 0xFF) for shift in (24, 16, 8, 0))


IDENTIFIER = "simulated-player"


def save(world: World) -> dict[str, object]:
    """Return the world as the game would save it."""
    content = {
        "ctor": "BitburnerSaveObject",
        "data": {"identifier": IDENTIFIER, "generation": world.generation, "servers": world.servers},
    }
    packed = gzip.compress(msgspec.json.encode(content), compresslevel=6, mtime=0)
    return {"identifier": IDENTIFIER, "binary": True, "save": packed.decode("latin-1")}
