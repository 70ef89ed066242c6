"""Tally: what calls used of one model."""

from __future__ import annotations

from msgspec import Struct

from .completion import Metadata


class Tally(Struct):
    """What was used of one model."""

    calls: int = 0
    errors: int = 0
    cache_hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cost_usd: float = 0.0

    def add(self, other: Tally) -> None:
        """Add another one to this one."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def tally_of(metadata: Metadata) -> Tally:
    """Count one call that the API answered."""
    used = metadata.usage
    return Tally(
        calls=1,
        prompt_tokens=used.prompt_tokens,
        completion_tokens=used.completion_tokens,
        total_tokens=used.total_tokens,
        cost_usd=metadata.cost_usd or 0.0,
    )
