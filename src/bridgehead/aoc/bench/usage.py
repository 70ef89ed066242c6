"""Usage: tokens, cost and model from the JSON that an agent prints. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct


class Usage(Struct, frozen=True):
    """Tokens and cost of a run as its agent reports them; None if not reported."""

    tokens: int | None = None
    cost_usd: float | None = None
    model: str | None = None


def read_usage(output: str) -> Usage:
    """Find tokens, cost and model in an agent's output; text that is not JSON is ignored."""
    total = Usage()
    for document in _documents(output):
        for parse in (_claude, _codex, _gemini, _opencode):
            more = parse(document)
            if more is not None:
                total = Usage(
                    _add(total.tokens, more.tokens),
                    _add(total.cost_usd, more.cost_usd),
                    more.model or total.model,
                )
                break
    return total


def _documents(output: str) -> Iterator[dict[str, Any]]:
    """Yield the output as one JSON object, or else each line that is one."""
    for text in (output, *output.split("\n")):
        stripped = text.strip()
        if stripped.startswith("{"):
            try:
                document = json.loads(stripped)
            except ValueError:
                continue
            if isinstance(document, dict):
                yield document
            if text is output:
                return


def _claude(document: dict[str, Any]) -> Usage | None:
    """`{"type": "result", "total_cost_usd": …, "usage": {…}, "modelUsage": {"claude-…": {…}}}`."""
    if document.get("type") != "result" or "usage" not in document:
        return None
    models = document.get("modelUsage")
    model = max(models, key=lambda name: _sum(models[name])) if isinstance(models, dict) and models else None
    return Usage(_sum(document["usage"]), _number(document.get("total_cost_usd")), model)


def _codex(document: dict[str, Any]) -> Usage | None:
    """`{"type": "turn.completed", "usage": {"input_tokens": …, "output_tokens": …}}`, one for a turn."""
    if document.get("type") != "turn.completed" or not isinstance(document.get("usage"), dict):
        return None
    # Codex includes cached tokens in `input_tokens`.
    usage = document["usage"]
    return Usage(_whole(usage.get("input_tokens")) + _whole(usage.get("output_tokens")))


def _gemini(document: dict[str, Any]) -> Usage | None:
    """`{"response": …, "stats": {"models": {"gemini-…": {"tokens": {"total": …}}}}}`."""
    stats = document.get("stats")
    models = stats.get("models") if isinstance(stats, dict) else None
    if not isinstance(models, dict) or not models:
        return None
    totals = {
        name: _whole(model_usage.get("tokens", {}).get("total"))
        for name, model_usage in models.items()
        if isinstance(model_usage, dict)
    }
    return Usage(sum(totals.values()), None, max(totals, key=lambda name: totals[name], default=None))


def _opencode(document: dict[str, Any]) -> Usage | None:
    """`{"type": "step_finish", "part": {"cost": …, "tokens": {"input": …}}}`, one for a step."""
    part = document.get("part")
    if document.get("type") != "step_finish" or not isinstance(part, dict):
        return None
    return Usage(_sum(part.get("tokens")), _number(part.get("cost")))


def _sum(counts: object) -> int:
    """Add up all counts of tokens in an object, nested ones too; if there is a total, only that counts."""
    if not isinstance(counts, dict):
        return 0
    if "total" in counts:
        return _whole(counts["total"])
    total = 0
    for name, value in counts.items():
        if isinstance(value, dict) and name == "cache":
            total += _sum(value)
        elif name in {"input", "output", "reasoning", "read", "write"} or name.endswith(("tokens", "Tokens")):
            total += _whole(value)
    return total


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(value) if is_number else None  # type: ignore[arg-type]


def _add(first: Any, second: Any) -> Any:
    return second if first is None else first if second is None else first + second
