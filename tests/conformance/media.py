"""The smallest image and the smallest sound: owns making them, so that no binary file is needed."""

import base64
import io
import struct
import wave
import zlib


def png() -> bytes:
    """One red pixel."""
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    row = b"\x00\xff\x00\x00"
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(row)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def wav() -> bytes:
    """One silent sample."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(b"\x00\x00")
    return file.getvalue()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG = png()
PNG_BASE64 = base64.b64encode(PNG).decode()
WAV_BASE64 = base64.b64encode(wav()).decode()
