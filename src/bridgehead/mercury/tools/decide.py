"""The tool `mercury_decide`: questions about a state, answered with probabilities instead of text."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, json

from bridgehead.mcp import Answer, Bridge, Context, Encoded, Text

from ..api.wire import DECISIONS
from ..arguments import CallArguments, shorten
from ..calling.service import Service
from ..completion import Metadata, encode_result
from ..errors import MercuryError
from ..settings import MercurySettings
from .chat import complete_call

DECIDE = "mercury_decide"
MAX_OPTIONS = 255


class Option(Struct, forbid_unknown_fields=True):
    """One possible answer."""

    label: Annotated[str, Meta(min_length=1)]
    meaning: str | UnsetType = UNSET


class Question(Struct, forbid_unknown_fields=True):
    """One question."""

    # The API takes maps with keys of the caller's choice, which strict function calling cannot express. So an
    # agent writes lists, and `to_body` makes the maps.

    name: Annotated[str, Meta(min_length=1, description="Yours; the answer has it too")]
    type: Annotated[
        Literal["noul", "choice", "score"],
        Meta(description="noul: yes or no; choice: an option; score: a number on the options' scale"),
    ]
    instructions: Annotated[str, Meta(description="What is asked")] | UnsetType = UNSET
    options: (
        Annotated[
            list[Option],
            Meta(
                min_length=1,
                max_length=MAX_OPTIONS,
                description="At most 255; for a score from low to high; for a noul true and false",
            ),
        ]
        | UnsetType
    ) = UNSET

    def to_body(self) -> dict[str, Any]:
        """Return the question in the API's form."""
        body: dict[str, Any] = {"type": self.type}
        if self.instructions is not UNSET:
            body["instructions"] = self.instructions
        if self.options is UNSET:
            if self.type != "noul":
                raise _refuse(f"the {self.type} {self.name!r} has no options: give them as a list of labels.")
            return body
        if self.type == "score":
            # A scale is an ordered list of texts, so label and meaning become one text.
            body["criteria"] = [
                option.label if option.meaning is UNSET else f"{option.label}: {option.meaning}"
                for option in self.options
            ]
            return body
        meanings = {
            option.label: None if option.meaning is UNSET else option.meaning for option in self.options
        }
        if len(meanings) < len(self.options):
            raise _refuse(f"two options of {self.name!r} have the same label.")
        if self.type == "choice":
            body["criteria"] = meanings
            return body
        if not meanings.keys() <= {"true", "false"}:
            raise _refuse(
                f"the options of {self.name!r}, a noul, are labelled true and false, and nothing else."
            )
        if criteria := {label: meaning for label, meaning in meanings.items() if meaning is not None}:
            body["criteria"] = criteria
        return body


def _refuse(problem: str) -> MercuryError:
    return MercuryError("INVALID_ARGUMENTS", f"questions: {problem}")


class Decide(CallArguments, kw_only=True):
    """A state, and questions about it."""

    state: Annotated[
        str | dict[str, Any], Meta(description="What the questions are about; images as data URLs")
    ]
    questions: Annotated[list[Question], Meta(min_length=1)]

    def to_body(self) -> Any:
        """Return the body of the request."""
        questions = {question.name: question.to_body() for question in self.questions}
        if len(questions) < len(self.questions):
            raise _refuse("two of them have the same name.")
        return {"model": self.model, "state": self.state, "questions": questions}


class Decision(Struct):
    """The answers, by the names of the questions."""

    answers: dict[str, Any]
    metadata: Metadata


def declare(bridge: Bridge[Service], settings: MercurySettings) -> None:
    """Declare the tool."""
    bridge.tool(
        "Decide about a state: yes or no with a probability, one of several labels, or a score on a scale, "
        "each with its confidence. Faster and easier to compare than text. Ask several questions at once.",
        name=DECIDE,
        title="Mercury decide",
        read_only=True,
        paid=True,
        open_world=True,
        input_schema=partial(shorten, with_files=False),
        defaults={"model": settings.model},
    )(decide)


async def decide(args: Decide, ctx: Context[Service]) -> Encoded | Answer[Decision]:
    """Decide about a state."""
    completion = await complete_call(ctx.state.make_call(DECIDE, DECISIONS, args, ctx), ctx)
    decision = Decision(json.decode(completion.content), completion.metadata)
    return encode_result([Text(completion.content)], completion.metadata, decision, ctx.revision)
