"""Catalogue: the models that the simulated API knows, with their prices and limits.

The shapes are the vendor's; names, limits and prices are only plausible, and nothing in the bridge may rely
on them. A simulator can be given another catalogue.
"""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

CHAT = "chat.completions"
FIM = "fim.completions"
EDIT = "edit.completions"

_SAMPLING = ("temperature", "top_p", "stop", "max_tokens")
_ABLE = ("tools", "json_mode", "structured_outputs")


class Pricing(Struct, frozen=True):
    """US dollars per token, as decimal strings."""

    prompt: str
    completion: str
    input_cache_reads: str = "0"
    input_cache_writes: str = "0"


class Model(Struct, frozen=True):
    """One model as the API lists it."""

    id: str
    name: str
    created: int
    context_length: int
    max_output_length: int
    pricing: Pricing
    supported_features: tuple[str, ...] = ()
    supported_endpoints: tuple[str, ...] | UnsetType = (CHAT,)
    supported_sampling_parameters: tuple[str, ...] = _SAMPLING
    object: str = "model"
    owned_by: str = "inception"
    input_modalities: tuple[str, ...] = ("text",)
    output_modalities: tuple[str, ...] = ("text",)

    @property
    def is_older(self) -> bool:
        """Whether the model answers in the older way: flat usage figures, no reasoning."""
        return "reasoning" not in self.supported_features and EDIT not in self.endpoints

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Endpoints of the model, also if it does not list them."""
        return (CHAT, FIM) if self.supported_endpoints is UNSET else self.supported_endpoints


_CHEAP = Pricing("0.00000025", "0.000001", "0.000000025")

MODELS = (
    Model(
        "mercury-3",
        "Mercury 3",
        1_786_000_000,
        1_000_000,
        65_536,
        Pricing("0.0000004", "0.0000016", "0.00000004"),
        (*_ABLE, "reasoning"),
    ),
    Model(
        "mercury-2.5",
        "Mercury 2.5",
        1_780_000_000,
        256_000,
        65_536,
        Pricing("0.0000003", "0.0000009", "0.00000003"),
        (*_ABLE, "reasoning"),
    ),
    Model(
        "mercury-2",
        "Mercury 2",
        1_771_000_000,
        128_000,
        50_000,
        Pricing("0.00000025", "0.00000075", "0.000000025"),
        (*_ABLE, "reasoning"),
    ),
    Model(
        "mercury-edit-2",
        "Mercury Edit 2",
        1_771_000_000,
        32_000,
        8_192,
        Pricing("0.00000025", "0.00000075", "0.000000025"),
        (),
        (FIM, EDIT),
    ),
    Model(
        "mercury-coder-small",
        "Mercury Coder Small",
        1_740_000_000,
        32_000,
        16_384,
        _CHEAP,
        _ABLE,
        (CHAT, FIM),
    ),
    Model("mercury-coder", "Mercury Coder", 1_745_000_000, 128_000, 16_384, _CHEAP, _ABLE, (CHAT, FIM)),
    Model("mercury", "Mercury", 1_750_000_000, 128_000, 16_384, _CHEAP, _ABLE, (CHAT,)),
)
