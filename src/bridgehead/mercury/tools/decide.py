"""The tool `mercury_decide`: questions about a state, answered with probabilities instead of text."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, json

from bridgehead.mcp import Answer, Bridge, Context, Encoded

from ..api.wire import DECISIONS
from ..calling.service import Service
from ..completion import Metadata, encode_result
from ..errors import MercuryError
from ..settings import MercurySettings
from .arguments import CallArguments
from .chat import complete_call
from .code import choose_model

DECIDE = "mercury_decide"
MAX_OPTIONS = 255

Instructions = Annotated[str, Meta(description="What is asked")]


class YesNo(Struct, forbid_unknown_fields=True):
    """What yes and no mean."""

    true: str | UnsetType = UNSET
    false: str | UnsetType = UNSET


class NoulQuestion(Struct, forbid_unknown_fields=True, tag="noul", tag_field="type"):
    """Is it so? The answer is a probability."""

    instructions: Instructions | UnsetType = UNSET
    criteria: YesNo | UnsetType = UNSET


class ChoiceQuestion(Struct, forbid_unknown_fields=True, tag="choice", tag_field="type"):
    """Which one is it? The answer is a label, with the probability of each."""

    criteria: Annotated[
        dict[str, str | None],
        Meta(min_length=1, max_length=MAX_OPTIONS, description="Labels with what they mean, or null"),
    ]
    instructions: Instructions | UnsetType = UNSET


class ScoreQuestion(Struct, forbid_unknown_fields=True, tag="score", tag_field="type"):
    """How much is it? The answer is a number on the scale."""

    criteria: Annotated[list[str], Meta(min_length=1, description="The scale, from low to high")]
    instructions: Instructions | UnsetType = UNSET


class Decide(CallArguments, kw_only=True):
    """A state, and what is to be decided about it."""

    state: Annotated[
        str | dict[str, Any], Meta(description="What the questions are about; images as data URLs")
    ]
    questions: Annotated[
        dict[str, NoulQuestion | ChoiceQuestion | ScoreQuestion],
        Meta(description="By name. noul: is it so? choice: which one? score: how much?"),
    ]

    def to_body(self) -> Any:
        """Return what is sent to the API."""
        if not self.questions:
            raise MercuryError("INVALID_ARGUMENTS", "questions is empty: there has to be at least one.")
        return self


class Decision(Struct):
    """The answers, by the names of the questions."""

    answers: dict[str, Any]
    metadata: Metadata


def declare(bridge: Bridge[Service], settings: MercurySettings) -> None:
    """Declare the tool."""
    bridge.tool(
        "Decide about a state: yes or no with a probability, one of several labels, or a score on a scale, "
        "each with its confidence. Faster and easier to compare than text; several questions at once.",
        name=DECIDE,
        title="Mercury decide",
        read_only=True,
        paid=True,
        open_world=True,
        defaults={"model": settings.decide_model or settings.model},
    )(decide)


async def decide(args: Decide, ctx: Context[Service]) -> Encoded | Answer[Decision]:
    """Decide about a state."""
    await choose_model(args, DECISIONS, ctx.state)
    completion = await complete_call(ctx.state.make_call(DECIDE, DECISIONS, args, ctx), ctx)
    decision = Decision(json.decode(completion.content), completion.metadata)
    return encode_result([completion.content], completion.metadata, decision, ctx.revision)
