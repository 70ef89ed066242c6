"""The rule of what a send cost, against far sides that keep their own books.

A far side knows what it bills. What it says of that is drawn: whole, in part, twice, in words, or not at all.
Only a detail (reasoning, cached) that is left out counts as 0: no API names those that it does not have.
"""

import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from bridgehead.mercury.api.evidence import Evidence
from bridgehead.mercury.api.prices import Prices
from bridgehead.mercury.calling.settlement import PLAUSIBLE, End, Terms, decide_end
from bridgehead.mercury.completion import Tokens

EPSILON = 1e-11
MOST_READ, MOST_WRITTEN = 10_000, 4_000
PRICES = (
    Prices(1e-6, 1e-5, 1e-6),
    Prices(1e-6, 1e-5, 1e-7, request=0.001),
    Prices(1e-6, 1e-5, 2e-6),
    Prices(2.5e-7, 7.5e-7, 2.5e-8, dearest_prompt=1e-6, is_exact=False),
    Prices(0.0, 0.0, 0.0),
    None,
)
REFUSALS = (400, 401, 404, 422, 429, 499)
ODD: tuple[Any, ...] = (-1, 2.5, 2**70, True, "many", "", "-3", [], {}, float("inf"), 1e300)
"""What stands in the place of a number; a null, a digit and a left out number are drawn separately."""


class Truth(Struct, frozen=True):
    """What a far side did for one send, and what it bills."""

    prompt: int
    completion: int
    """Tokens that were written, without reasoning that is counted beside them."""
    beside: int
    """Reasoning tokens that are billed but no part of the completion."""
    inside: int
    cached: int
    prices: Prices | None
    discount: float
    """The share of the list price that it charges if it names the cost."""

    @property
    def usd(self) -> float:
        """The list price."""
        prices = self.prices or Prices(1e-6, 1e-5, 1e-6)
        return (
            (self.prompt - self.cached) * prices.prompt
            + self.cached * prices.cached
            + (self.completion + self.beside) * prices.completion
            + prices.request
        )

    def report(self) -> dict[str, Any]:
        """Report everything as it is."""
        total = self.prompt + self.completion + self.beside
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": total,
            "completion_tokens_details": {"reasoning_tokens": self.beside or self.inside},
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }


@st.composite
def truths(draw: st.DrawFn) -> Truth:
    prompt = draw(st.integers(1, MOST_READ))
    completion = draw(st.integers(0, MOST_WRITTEN // 2))
    is_beside = draw(st.booleans())
    return Truth(
        prompt,
        completion,
        draw(st.integers(0, MOST_WRITTEN // 2)) if is_beside else 0,
        0 if is_beside else draw(st.integers(0, completion)),
        draw(st.integers(0, prompt)),
        draw(st.sampled_from(PRICES)),
        draw(st.floats(0.1, 1)),
    )


@st.composite
def reports(draw: st.DrawFn, truth: Truth) -> tuple[tuple[Any, ...], float]:
    """Draw what a far side says it used, and what it bills."""
    usd, said = truth.usd, truth.report()
    for place, name in (
        *((said, name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")),
        (said["completion_tokens_details"], "reasoning_tokens"),
        (said["prompt_tokens_details"], "cached_tokens"),
    ):
        change = draw(st.sampled_from(["", "", "", "", "left out", "null", "odd", "text", "float"]))
        if name in ("reasoning_tokens", "cached_tokens") and place[name] and change in ("left out", "null"):
            continue
        if change == "left out":
            del place[name]
        elif change:
            value = place[name]
            odd = draw(st.sampled_from(ODD)) if change == "odd" else None
            place[name] = {"null": None, "odd": odd, "text": str(value), "float": float(value)}[change]
    for name in ("completion_tokens_details", "prompt_tokens_details"):
        if draw(st.booleans()):
            nested = said.pop(name)
            flat = "reasoning_tokens" if "completion" in name else "cached_input_tokens"
            said |= dict.fromkeys([flat], *nested.values()) if nested else {}
    if draw(st.booleans()):  # the cost: right, or such that nobody can believe it
        usd *= truth.discount
        kind = draw(st.sampled_from(["right", "byok", "half of it", "odd"]))
        said["cost"] = usd
        if kind == "byok":
            said |= {
                "cost": usd / 20,
                "is_byok": True,
                "cost_details": {"upstream_inference_cost": usd * 0.95},
            }
        elif kind == "half of it":
            said |= {
                "cost": usd / 20,
                "is_byok": True,
                "cost_details": draw(st.sampled_from([None, {}, "?"])),
            }
        elif kind == "odd":
            said["cost"] = draw(st.sampled_from([-1.0, math.nan, math.inf, "free", True, [usd], 1e9]))
    whole = draw(st.sampled_from(["once", "once", "twice", "twice differently", "never", "no object"]))
    if whole == "never":
        return (), usd
    if whole == "no object":
        return (draw(st.sampled_from(["7", 7, [7], True])),), usd
    if whole == "twice differently":
        return ({**said, "prompt_tokens": truth.prompt + 1}, said), usd
    return (said, said) if whole == "twice" else (said,), usd


@st.composite
def sends(draw: st.DrawFn) -> tuple[Evidence, Terms, float]:
    """Draw one send: what is known of it, what was known before, and what the far side bills."""
    truth = draw(truths())
    usage, usd = draw(reports(truth))
    worst = None if truth.prices is None else truth.prices.worst_cost(MOST_READ, MOST_WRITTEN)
    bills_refusals = draw(st.booleans())
    terms = Terms(truth.prices, worst, MOST_READ, MOST_WRITTEN, bills_refusals)
    end = draw(st.sampled_from(["whole", "whole", "cut", "lost", "refused", "failed", "not written"]))
    if end == "not written":
        return Evidence(is_written=False), terms, 0.0
    if end == "whole":
        return Evidence(is_written=True, status=200, is_whole=True, usage=usage), terms, usd
    if end == "refused":
        status = draw(st.sampled_from(REFUSALS))
        is_billed = bool(usage) or (bills_refusals and status == 400)
        return Evidence(is_written=True, status=status, usage=usage), terms, usd if is_billed else 0.0
    # Nobody can tell whether these are billed.
    usd = draw(st.sampled_from([0.0, usd]))
    failed: int | None = draw(st.sampled_from([302, 408, 500, 502, 503, 504, 529]))
    known = {"cut": 200, "lost": None}.get(end, failed)
    return Evidence(is_written=True, status=known, usage=usage), terms, usd


@settings(max_examples=500)
@given(sends())
def test_what_is_billed_is_settled_to_the_cent_or_uncertain_at_the_worst_case(
    send: tuple[Evidence, Terms, float],
) -> None:
    evidence, terms, billed = send

    end = decide_end(evidence, terms)

    if end.state == "settled":
        assert end.usd == pytest.approx(billed, abs=EPSILON)
    elif end.state == "released":
        assert billed == 0
    else:
        assert end.why
        assert terms.worst_usd is None or billed <= terms.worst_usd + EPSILON


@given(truths())
def test_a_whole_report_is_settled_at_the_listed_price(truth: Truth) -> None:
    prices = truth.prices
    worst = None if prices is None else prices.worst_cost(MOST_READ, MOST_WRITTEN)
    evidence = Evidence(is_written=True, status=200, is_whole=True, usage=(truth.report(),))

    end = decide_end(evidence, Terms(prices, worst, MOST_READ, MOST_WRITTEN))

    total = truth.prompt + truth.completion + truth.beside
    assert end.tokens is not None
    assert (end.tokens.prompt_tokens, end.tokens.total_tokens) == (truth.prompt, total)
    is_proven = prices is not None and prices.is_exact
    assert end.state == ("settled" if is_proven else "uncertain")


WORST = 0.02
LISTED = Prices(1e-6, 1e-5, 1e-6)


def settle(usage: dict[str, Any], prices: Prices | None = LISTED) -> End:
    """Settle a whole answer that says this of its usage."""
    evidence = Evidence(is_written=True, status=200, is_whole=True, usage=(usage,))
    return decide_end(evidence, Terms(prices, WORST, MOST_READ, MOST_WRITTEN))


@given(st.floats(WORST * 1.001, WORST * PLAUSIBLE))
@example(0.15)
def test_a_charge_above_the_worst_case_is_settled_and_named(usd: float) -> None:
    end = settle({"cost": usd})

    assert (end.state, end.usd) == ("settled", usd)
    assert "more than its prices" in end.why


@pytest.mark.parametrize("usd", [WORST * PLAUSIBLE * 1.01, 2000.0])
def test_a_charge_that_cannot_be_true_does_not_lock_the_budget(usd: float) -> None:
    assert settle({"cost": usd}).state == "uncertain"
    assert settle({"prompt_tokens": int(usd * 1e6), "completion_tokens": 1}).state == "uncertain"


@pytest.mark.parametrize("usd", [WORST, WORST * (1 + 1e-12), WORST + 1e-14])
def test_rounding_is_no_overcharge(usd: float) -> None:
    assert settle({"cost": usd}).why == ""


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 5}, Tokens(7, 5, 12)),
        ({"input_tokens": 7, "output_tokens": 5}, Tokens(7, 5, 12)),
        ({"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": None}, Tokens(7, 5, 12)),
        (
            {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 15, "reasoning_tokens": 3},
            Tokens(7, 5, 15, 3),
        ),
        (
            {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12, "reasoning_tokens": 3},
            Tokens(7, 5, 12, 3),
        ),
    ],
    ids=["two numbers", "a decision's names", "total null", "reasoning beside", "reasoning inside"],
)
def test_tokens_that_are_proven_are_settled(usage: dict[str, Any], tokens: Tokens) -> None:
    end = settle(usage)

    assert (end.state, end.tokens, end.usd) == ("settled", tokens, LISTED.cost(tokens))


def test_a_cost_of_nothing_is_believed_only_of_a_model_that_is_free() -> None:
    assert settle({"cost": 0}).state == "uncertain"
    assert settle({"cost": 0}, Prices(0, 0, 0)) == End("settled", 0.0)


def test_embeddings_have_no_completion() -> None:
    evidence = Evidence(is_written=True, status=200, is_whole=True, usage=({"prompt_tokens": 8},))

    end = decide_end(evidence, Terms(LISTED, WORST, MOST_READ, most_written=0))

    assert (end.state, end.tokens) == ("settled", Tokens(8, 0, 8))
