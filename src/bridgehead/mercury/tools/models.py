"""The model list: the tool `mercury_list_models` and the resource `mercury://models`, with equal content."""

from __future__ import annotations

from msgspec import Struct, json

from bridgehead.mcp import Bridge, Context, NoArguments

from ..api.prices import read_price
from ..calling.service import Service

LIST_MODELS = "mercury_list_models"
URI = "mercury://models"


class ListedPrice(Struct, omit_defaults=True):
    """US dollars for one token."""

    prompt: float | None = None
    completion: float | None = None
    cached_input: float | None = None


class ListedModel(Struct, omit_defaults=True):
    """A model with the contract's fields, and its price."""

    id: str
    owned_by: str
    created: int
    capabilities: list[str]
    context_length: int | None = None
    max_output_length: int | None = None
    price_usd_per_token: ListedPrice | None = None
    is_default: bool = False


class ListedModels(Struct):
    """All models."""

    models: list[ListedModel]


def declare(bridge: Bridge[Service]) -> None:
    """Declare the tool and the resource."""
    bridge.tool(
        "List the Mercury models that can be used: id, capabilities, context length, prices. Use it before "
        "naming a model, or when one was not found.",
        name=LIST_MODELS,
        title="Mercury models",
        read_only=True,
        idempotent=True,
        open_world=True,
    )(list_models)
    bridge.resource(
        URI,
        name="Mercury models",
        description="The models of the Mercury API with capabilities, limits and prices.",
        mime_type="application/json",
    )(read_models)


async def list_models(args: NoArguments, ctx: Context[Service]) -> ListedModels:
    """List the models."""
    return await _fetch_list(ctx.state)


async def read_models(ctx: Context[Service]) -> str:
    """Return the list as a resource."""
    return json.encode(await _fetch_list(ctx.state)).decode()


async def _fetch_list(service: Service) -> ListedModels:
    allowed = service.settings.allowed_models
    listed = [ListedModel(name, "route", 0, []) for name in service.routes.names]
    if listed and not service.keys.count:
        return ListedModels(listed)  # only routes to other providers
    service.keys.pick()  # raises without a key, even if the list is cached
    models = await service.catalogue.fetch()
    for model in models:
        if allowed and model.id not in allowed:
            continue
        price = None
        if model.pricing is not None:
            price = ListedPrice(
                read_price(model.pricing.get("prompt")),
                read_price(model.pricing.get("completion")),
                read_price(model.pricing.get("input_cache_reads", model.pricing.get("input_cache_read"))),
            )
        listed.append(
            ListedModel(
                model.id,
                model.owned_by or "inception",
                int(model.created or 0),
                sorted({*(model.supported_features or ()), *(model.supported_endpoints or ())}),
                model.context_length,
                model.max_output_length,
                price,
                model.id == service.settings.model,
            )
        )
    return ListedModels(listed)
