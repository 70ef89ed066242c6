"""The tool `mercury_embeddings`: vectors of texts, from a provider that offers them.

Mercury itself does not. Offered only if MERCURY_EMBEDDING_MODEL names a model.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, json

from bridgehead.mcp import Answer, Bridge, Context, Encoded, Text

from ..api.wire import EMBEDDINGS
from ..arguments import CallArguments, shorten
from ..calling.service import Service
from ..completion import Metadata, encode_result
from ..errors import MercuryError
from ..settings import MercurySettings
from .chat import complete_call

EMBED = "mercury_embeddings"
MAX_TEXTS = 100


class Embeddings(CallArguments, kw_only=True):
    """Texts to make vectors of."""

    # Without the usual description, which refers to the list of models: that has only Mercury's.
    model: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    input: Annotated[list[str], Meta(min_length=1, max_length=MAX_TEXTS, description="At most 100 texts")]
    dimensions: Annotated[int, Meta(ge=1, description="Shorter vectors, if the model can")] | UnsetType = (
        UNSET
    )


class Vectors(Struct):
    """One vector for each text, in order."""

    embeddings: list[list[float]]
    metadata: Metadata


def declare(bridge: Bridge[Service], settings: MercurySettings) -> None:
    """Declare the tool."""
    bridge.tool(
        "Make embedding vectors of texts, one for each, in order.",
        name=EMBED,
        title="Mercury embeddings",
        read_only=True,
        paid=True,
        open_world=True,
        input_schema=partial(shorten, with_files=False),
        defaults={"model": settings.embedding_target[1]},
    )(embed)


async def embed(args: Embeddings, ctx: Context[Service]) -> Encoded | Answer[Vectors]:
    """Make vectors."""
    call = ctx.state.make_call(EMBED, EMBEDDINGS, args, ctx)
    completion = await complete_call(call, ctx)
    vectors = Vectors(json.decode(completion.content), completion.metadata)
    if len(vectors.embeddings) != len(args.input):
        why = f"{len(vectors.embeddings)} vectors for {len(args.input)} texts"
        message = f"The vectors cannot be matched with the texts: {why}."
        raise MercuryError("BAD_RESPONSE", message, content=completion.content)
    return encode_result([Text(completion.content)], completion.metadata, vectors, ctx.revision)
