"""Servers: the hosts of a fresh game, and the address of each."""

from __future__ import annotations

from zlib import crc32

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
    """Return an IP address for a host: always the same one, which the game would draw at random."""
    number = crc32(host.encode())
    return ".".join(str(number >> shift & 0xFF) for shift in (24, 16, 8, 0))
