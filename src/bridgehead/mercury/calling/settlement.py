"""Settlement: the one rule of what a send cost. Pure.

`decide_end` comes first. A send is settled or released only if that is proven; anything else is uncertain, at
the worst case that was reserved for it. A missing number is missing, never 0.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec import Struct

from ..api.evidence import MAX_REPORTS, Evidence
from ..api.prices import Prices
from ..completion import Tokens

Outcome = Literal["settled", "released", "uncertain"]
PLAUSIBLE = 10
"""A reported cost above this many worst cases is a mistake of the API."""
_REQUEST_TIMEOUT = 408
_BAD_REQUEST = 400
_SUCCESS = range(200, 300)
_REFUSALS = range(400, 500)
_ROUNDING = 1e-9
"""Of the worst case: how far a settlement may exceed it before it counts as an overcharge."""


def decide_end(found: Evidence, terms: Terms) -> End:
    """Decide what a send cost from what is known of it."""
    if not found.is_written:
        return End("released")
    if found.status is None:
        return End("uncertain", why="no answer came")
    is_refused = found.status in _REFUSALS and found.status != _REQUEST_TIMEOUT
    if is_refused and not found.usage:
        if terms.bills_refusals and found.status == _BAD_REQUEST:
            return End("uncertain", why="this provider bills what it refuses")
        return End("released")
    if not is_refused and found.status not in _SUCCESS:
        return End("uncertain", why=f"the API answered with {found.status}")
    if not is_refused and not found.is_whole:
        return End("uncertain", why="no whole answer came")
    reports = [_read_report(report, has_answer=terms.most_written != 0) for report in found.usage]
    if not reports:
        return End("uncertain", why="the API reported no usage")
    report = reports[-1]
    if any(other != report for other in reports) or len(reports) == MAX_REPORTS:
        return End("uncertain", why="the API reported different usages")
    if isinstance(report.usd, str):
        return End("uncertain", tokens=report.tokens_or_none, why=report.usd)
    if report.usd is not None:
        return _settle_cost(report.usd, report.tokens_or_none, terms)
    if isinstance(report.tokens, str):
        return End("uncertain", why=report.tokens)
    return _settle_tokens(report.tokens, terms)


class End(Struct, frozen=True):
    """How a send ended, and what is known of it."""

    state: Outcome
    usd: float | None = None
    """What a settled send cost."""
    tokens: Tokens | None = None
    """The tokens, if they are proven."""
    why: str = ""
    """Why it is uncertain, or what is odd about it."""


class Terms(Struct, frozen=True):
    """What was known before the send."""

    prices: Prices | None
    worst_usd: float | None
    """The most that it can cost; None if that is not known."""
    most_read: int | None = None
    """Prompt tokens that the model takes at most."""
    most_written: int | None = None
    """Tokens that the model writes at most; 0 for embeddings."""
    bills_refusals: bool = False
    """Whether the provider charges for requests that it refuses with 400."""


def _settle_cost(usd: float, tokens: Tokens | None, terms: Terms) -> End:
    """Settle the cost that the provider reports, if it can be true. It has precedence over the list."""
    if usd == 0 and terms.prices is not None and not terms.prices.is_free:
        return End("uncertain", tokens=tokens, why="the API reported a cost of 0 for a model with a price")
    if usd > (_MOST_USD if terms.worst_usd is None else PLAUSIBLE * terms.worst_usd):
        return End("uncertain", tokens=tokens, why=f"the API reported a cost of ${usd:g}, which cannot be")
    return _settled(usd, tokens, terms)


def _settle_tokens(tokens: Tokens, terms: Terms) -> End:
    """Settle the reported tokens at the listed price, if the model can have read and written so many."""
    written = tokens.total_tokens - tokens.prompt_tokens
    for number, most, what in (
        (tokens.prompt_tokens, terms.most_read, "read"),
        (written, terms.most_written, "write"),
    ):
        if most is not None and number > most:
            why = f"the API reported {number:,} tokens, and the model can {what} {most:,}"
            return End("uncertain", why=why)
    if terms.prices is None:
        return End("uncertain", tokens=tokens, why="the price of the model is not known")
    usd = terms.prices.cost(tokens)
    if terms.worst_usd is not None and usd > PLAUSIBLE * terms.worst_usd:
        return End("uncertain", why=f"the API reported tokens for ${usd:g}, which cannot be")
    if not terms.prices.is_exact:
        return End("uncertain", tokens=tokens, why="the reported tokens do not decide the price")
    return _settled(usd, tokens, terms)


def _settled(usd: float, tokens: Tokens | None, terms: Terms) -> End:
    worst, why = terms.worst_usd, ""
    if worst is not None and usd > worst * (1 + _ROUNDING) + 1e-12:
        why = f"the API charged ${usd:.6f}, more than its prices and max_tokens allow (${worst:.6f})"
    return End("settled", usd, tokens, why)


# --- what one report says ----------------------------------------------------------------------------------


class _Report(Struct, frozen=True):
    """A report of usage: the cost and the tokens, or what is wrong with them."""

    usd: float | str | None
    tokens: Tokens | str

    @property
    def tokens_or_none(self) -> Tokens | None:
        return None if isinstance(self.tokens, str) else self.tokens


def _read_report(report: Any, *, has_answer: bool) -> _Report:
    if not isinstance(report, dict):
        return _Report(None, "the usage that the API reported cannot be read")
    return _Report(_read_cost(report), _read_tokens(report, has_answer=has_answer))


def _read_cost(report: dict[str, Any]) -> float | str | None:
    """Return the cost; None without one, or a text that says what is wrong with it."""
    cost = report.get("cost")
    if isinstance(cost, dict):  # Perplexity
        cost = cost.get("total_cost")
    details = report.get("cost_details")
    upstream = details.get("upstream_inference_cost") if isinstance(details, dict) else None
    amount = _read_amount(cost)
    if cost is None:
        return None if upstream is None else "the API reported only a part of the cost"
    if amount is None:
        return "the cost that the API reported is not a number"
    # OpenRouter with a key of one's own (BYOK): its fee is the cost, and the provider bills the rest.
    if report.get("is_byok", upstream is not None) is False:
        return amount
    rest = _read_amount(upstream)
    return "the API reported only its own fee, not the provider's cost" if rest is None else amount + rest


def _read_amount(value: Any) -> float | None:
    try:
        amount = -1.0 if isinstance(value, bool) or value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return amount if 0 <= amount < float("inf") else None


_MISSING = -1
_WRONG = -2
_MOST_TOKENS = 10**12
_MOST_USD = 1e6
_DIGITS = re.compile("[0-9]{1,13}")


def _read_tokens(report: dict[str, Any], *, has_answer: bool) -> Tokens | str:
    """Return the tokens if all of them are proven; otherwise a text that says what is wrong."""
    counts = [
        _read_count(report, "prompt_tokens", "input_tokens"),
        _read_count(report, "completion_tokens", "output_tokens"),
        _read_count(report, "total_tokens"),
        _read_nested(report, "completion_tokens_details", "reasoning_tokens", "reasoning_tokens"),
        _read_nested(report, "prompt_tokens_details", "cached_tokens", "cached_input_tokens"),
    ]
    if _WRONG in counts:
        return "the API's token counts cannot be true"
    prompt, completion, total, reasoning, cached = counts
    if completion == _MISSING and not has_answer:
        completion = 0
    if _MISSING in (prompt, completion):
        is_empty = counts == [_MISSING] * len(counts)
        return "the API reported no usage" if is_empty else "the API reported only a part of the usage"
    if prompt == 0:  # no request is empty
        return "the API reported no tokens"
    thought = max(reasoning, 0)
    if total == _MISSING and thought:
        # Whether they are part of the completion cannot be told without the total.
        return "the API reported reasoning without a total"
    beside = max(total, prompt + completion) - prompt - completion
    if cached > prompt or (total != _MISSING and total < prompt + completion):
        return "the API's token counts contradict each other"
    if beside != (thought if beside else 0) or (not beside and thought > completion):
        return "the API's token counts contradict each other"
    return Tokens(
        prompt,
        completion,
        prompt + completion + beside,
        None if reasoning == _MISSING else reasoning,
        None if cached == _MISSING else cached,
    )


def _read_nested(report: dict[str, Any], details: str, name: str, flat: str) -> int:
    """Read a count in the newer form (in details), or else in the older one (flat)."""
    nested = report.get(details)
    if nested is not None and not isinstance(nested, dict):
        return _WRONG
    count = _MISSING if nested is None else _read_count(nested, name)
    return _read_count(report, flat) if count == _MISSING else count


def _read_count(report: dict[str, Any], *names: str) -> int:
    """Return a count of tokens: a whole number; `_MISSING` without one, `_WRONG` for anything else."""
    counts = {_read_whole(report[name]) for name in names if report.get(name) is not None}
    if not counts:
        return _MISSING
    return counts.pop() if len(counts) == 1 else _WRONG


def _read_whole(value: Any) -> int:
    if (isinstance(value, str) and _DIGITS.fullmatch(value)) or (
        isinstance(value, float) and value.is_integer()
    ):
        value = int(value)
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else _WRONG
