"""Shape: how much decoding a message would build, counted in its bytes before anything is decoded.

A message of 16 MB may be one text, or millions of lists that take a gigabyte. Decoding holds the interpreter,
in a thread too, so what costs too much has to be refused unread. Only what is outside of strings counts:
text that is full of brackets is still one value.
"""

from __future__ import annotations

MAX_VALUES = 50_000
"""Values of one message, with its arguments: each `[`, `{` and `,` outside of strings."""
MAX_DIGITS = 20 * MAX_VALUES
"""Digits of one message, outside of strings: a number of 4,000 digits takes 0.2 ms."""
VALUE_BYTES = 256
"""Memory that a decoded value is charged for beside its bytes: an object with a member takes that much."""
TOO_MUCH = f"a message may have {MAX_VALUES} values and {MAX_DIGITS} digits"

_SLICE_BYTES = 64 * 1024
_VALUES = b"[{,"
_DIGITS = b"0123456789"


class Shape:
    """Counts a message that arrives in pieces. What comes after the first error in its JSON is not decoded.

    That is why only valid JSON has to be counted exactly.
    """

    __slots__ = ("_digits", "_is_in_string", "_rest", "_values")

    def __init__(self) -> None:
        self._values = self._digits = 0
        self._is_in_string = False
        self._rest = b""
        """A backslash at the end of a piece, whose meaning depends on the next one."""

    def add(self, data: bytes | bytearray | memoryview) -> bool:
        """Count a piece; False once the message is too much."""
        # Every step is one pass in C: 16 MB take 0.1 s, and an HTTP body is counted while it arrives.
        for start in range(0, len(data), _SLICE_BYTES):
            text = self._rest + data[start : start + _SLICE_BYTES]
            self._rest = b""
            if b"\\" in text:
                # First the backslashes that stand for themselves, then the quotes that end no string.
                text = text.replace(b"\\\\", b"")
                if text.endswith(b"\\"):
                    text, self._rest = text[:-1], b"\\"
                text = text.replace(b'\\"', b"")
            parts = text.split(b'"')
            outside = b"".join(parts[self._is_in_string :: 2])
            self._is_in_string ^= len(parts) % 2 == 0
            without_values = outside.translate(None, _VALUES)
            self._values += len(outside) - len(without_values)
            self._digits += len(without_values) - len(without_values.translate(None, _DIGITS))
            if self._values > MAX_VALUES or self._digits > MAX_DIGITS:
                return False
        return True

    @property
    def counts(self) -> tuple[int, int]:
        """The values and digits so far."""
        return self._values, self._digits

    @property
    def memory(self) -> int:
        """Bytes that the values so far may take once they are decoded, beside the bytes of the message."""
        return self._values * VALUE_BYTES


def fits(data: bytes | bytearray | memoryview) -> bool:
    """Whether a message may be decoded. A short one may: no byte builds more than one value."""
    return len(data) <= MAX_VALUES or Shape().add(data)


def weigh(data: bytes | bytearray | memoryview) -> int:
    """Return the memory that a message, or a part of one, may take once it is decoded."""
    shape = Shape()
    shape.add(data)
    return len(data) + shape.memory
