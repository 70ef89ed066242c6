"""Arguments: what several tools take, and what an agent may write instead.

Declared once, so that all agree.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from bridgehead.runtime.errors import InvalidArgument

from ..files.entries import Measure, Name, Source
from ..files.layout import Day, Phase

Llm = Annotated[Name, Meta(description="LLM name or alias")]
MeasureFilter = Annotated[
    Measure, Meta(description="solving: until the answer; execution: the program's run")
]
RecordMeasure = Annotated[Measure, Meta(description="What was timed (default solving)")]
RecordSource = Annotated[Source, Meta(description="claimed, or measured by a clock of the caller")]

__all__ = [
    "Day",
    "Llm",
    "MeasureFilter",
    "Phase",
    "RecordMeasure",
    "RecordSource",
    "choose_name",
]


def choose_name(llm_name: str | UnsetType, llm: str | UnsetType) -> str | UnsetType:
    """Return the name that was given under either of its two spellings; refuse two different ones."""
    if llm_name is UNSET:
        return llm
    if llm is not UNSET and llm != llm_name:
        raise InvalidArgument("llm and llm_name are different.", next_step="Give one of them.")
    return llm_name
