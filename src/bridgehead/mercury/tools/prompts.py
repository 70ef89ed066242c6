"""Prompts: review code, complete code, explain something."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from bridgehead.mcp import Arguments, Bridge, Context

from ..calling.service import Service


class ReviewCode(Arguments):
    """Arguments of `review_code`."""

    code: Annotated[str, Meta(min_length=1, description="The code to review")]
    language: Annotated[str, Meta(description="Its programming language")] = ""
    focus: Annotated[str, Meta(description="What to focus on, such as security or speed")] = ""


class CompleteCode(Arguments):
    """Arguments of `complete_code`."""

    before: Annotated[str, Meta(min_length=1, description="The code before the gap")]
    after: Annotated[str, Meta(description="The code after the gap")] = ""
    language: Annotated[str, Meta(description="The programming language")] = ""


class Explain(Arguments):
    """Arguments of `explain`."""

    subject: Annotated[str, Meta(min_length=1, description="Code, an error message or an idea")]
    audience: Annotated[str, Meta(description="Who should understand it")] = ""


def declare(bridge: Bridge[Service]) -> None:
    """Declare the prompts."""
    bridge.prompt("Review code with Mercury.", title="Review code")(review_code)
    bridge.prompt("Fill in or continue code with Mercury.", title="Complete code")(complete_code)
    bridge.prompt("Explain code, an error or an idea with Mercury.", title="Explain")(explain)


def review_code(args: ReviewCode, ctx: Context[Service]) -> str:
    """Ask for a review."""
    focus = f" Focus on {args.focus}." if args.focus else ""
    return (
        "Review this code. Let mercury_chat_stream do it. List bugs first, then risks, then what would make "
        f"it clearer, each with its line and a fix; say so where there is nothing to find.{focus}\n\n"
        f"{fence(args.code, args.language)}"
    )


def complete_code(args: CompleteCode, ctx: Context[Service]) -> str:
    """Ask for a completion."""
    return (
        "Complete this code, and show the whole with the gap filled. Call mercury_fim_completion with what "
        "stands before the gap as `prompt` and what stands after it as `suffix`, exactly as here.\n\n"
        f"Before:\n{fence(args.before, args.language)}\n\nAfter:\n{fence(args.after, args.language)}"
    )


def explain(args: Explain, ctx: Context[Service]) -> str:
    """Ask for an explanation."""
    audience = f" for {args.audience}" if args.audience else ""
    return (
        f"Explain this{audience} in plain words: what it is, how it works, and what to watch out for. "
        f"Let mercury_chat_completion do it.\n\n{args.subject}"
    )


def fence(code: str, language: str) -> str:
    """Return code in a fence that it does not contain."""
    mark = "```"
    while mark in code:
        mark += "`"
    return f"{mark}{language}\n{code}\n{mark}"
