"""Forwarder: makes a DLL without code, whose functions are those of other DLLs.

Rust's standard library asks bcryptprimitives.dll for random bytes. Wine 8 has no such DLL, but the function
that older programs call for the same, with the same arguments.
"""

import struct
from collections.abc import Mapping

BCRYPT_PRIMITIVES = ("bcryptprimitives.dll", {"ProcessPrng": "ADVAPI32.SystemFunction036"})

_SECTION_RVA = 0x1000
_ALIGNMENT = 0x200
_HEADERS = 0x200
_BASE = 0x6_F000_0000
_AMD64 = 0x8664
_IS_DLL = 0x2022
"""Executable, aware of large addresses, and a DLL."""
_READ_ONLY_DATA = 0x4000_0040
_DIRECTORIES = 16
_EXPORT_HEADER = 40


def make_forwarder(name: str, functions: Mapping[str, str]) -> bytes:
    """Return the bytes of a DLL that has these functions; each value is `DLL.function`."""
    exports = _make_exports(name, functions)
    padded = exports + bytes(-len(exports) % _ALIGNMENT)
    section = struct.pack(
        *("<8sIIIIIIHHI", b".rdata", len(exports), _SECTION_RVA, len(padded), _HEADERS, 0, 0, 0, 0),
        _READ_ONLY_DATA,
    )
    headers = _make_headers(len(exports), len(padded)) + section
    return headers.ljust(_HEADERS, b"\0") + padded


def _make_headers(size: int, padded: int) -> bytes:
    dos = b"MZ".ljust(60, b"\0") + struct.pack("<I", 64)
    optional = struct.pack("<HBBIIIII", 0x20B, 14, 0, 0, padded, 0, 0, _SECTION_RVA)
    optional += struct.pack("<QIIHHHHHHI", _BASE, 0x1000, _ALIGNMENT, 6, 0, 0, 0, 6, 0, 0)
    image_size = _SECTION_RVA + (size + 0xFFF) // 0x1000 * 0x1000
    optional += struct.pack("<IIIHH", image_size, _HEADERS, 0, 3, 0x100)
    optional += struct.pack("<QQQQII", 0x100000, 0x1000, 0x100000, 0x1000, 0, _DIRECTORIES)
    optional += struct.pack("<II", _SECTION_RVA, size) + bytes(8 * (_DIRECTORIES - 1))
    return dos + b"PE\0\0" + struct.pack("<HHIIIHH", _AMD64, 1, 0, 0, 0, len(optional), _IS_DLL) + optional


def _make_exports(name: str, functions: Mapping[str, str]) -> bytes:
    """Return the export table: an address inside of the table itself is the name of another function."""
    names = sorted(functions)
    count = len(names)
    addresses = _SECTION_RVA + _EXPORT_HEADER
    name_pointers, ordinals = addresses + 4 * count, addresses + 8 * count
    text = bytearray()
    start = ordinals + 2 * count

    def place(word: str) -> int:
        where = start + len(text)
        text.extend(word.encode("ascii") + b"\0")
        return where

    own = place(name)
    targets = [place(functions[function]) for function in names]
    pointers = [place(function) for function in names]
    header = struct.pack("<IIHHIIIIIII", 0, 0, 0, 0, own, 1, count, count, addresses, name_pointers, ordinals)
    tables = struct.pack(f"<{count}I{count}I{count}H", *targets, *pointers, *range(count))
    return header + tables + bytes(text)
