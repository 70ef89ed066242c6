"""Usage: what the agents print of tokens and cost."""

import json

from bridgehead.aoc.bench.usage import Usage, read_usage


def test_claude_code_says_what_a_run_cost() -> None:
    printed = {
        "type": "result",
        "total_cost_usd": 0.12,
        "usage": {
            "input_tokens": 10,
            "cache_creation_input_tokens": 200,
            "cache_read_input_tokens": 3000,
            "output_tokens": 40,
            "server_tool_use": {"web_search_requests": 7},
        },
        "modelUsage": {
            "claude-haiku": {"inputTokens": 5, "outputTokens": 1},
            "claude-opus": {"inputTokens": 3000, "outputTokens": 40},
        },
    }

    assert read_usage(json.dumps(printed, indent=2)) == Usage(3250, 0.12, "claude-opus")


def test_codex_says_how_many_tokens_each_turn_took() -> None:
    lines = [
        {"type": "thread.started", "thread_id": "x"},
        {
            "type": "turn.completed",
            "usage": {"input_tokens": 100, "cached_input_tokens": 90, "output_tokens": 5},
        },
        {
            "type": "turn.completed",
            "usage": {"input_tokens": 200, "cached_input_tokens": 90, "output_tokens": 6},
        },
    ]

    assert read_usage("a warning\n" + "\n".join(map(json.dumps, lines))) == Usage(311)


def test_gemini_says_how_many_tokens_each_model_took() -> None:
    models = {
        "gemini-pro": {"tokens": {"prompt": 90, "total": 100}},
        "gemini-flash": {"tokens": {"total": 7}},
    }

    assert read_usage(json.dumps({"response": "ok", "stats": {"models": models}})) == Usage(
        107, None, "gemini-pro"
    )


def test_opencode_says_what_each_step_cost() -> None:
    tokens = {"input": 100, "output": 20, "reasoning": 3, "cache": {"read": 50, "write": 1}}
    step = {"type": "step_finish", "part": {"type": "step-finish", "cost": 0.25, "tokens": tokens}}

    assert read_usage(f"{json.dumps(step)}\n{json.dumps(step)}\n") == Usage(348, 0.5)


def test_a_separator_in_a_text_does_not_break_a_line_of_json() -> None:
    step = '{"type": "step_finish", "part": {"cost": 0.25, "text": "a\u2028b"}}'

    assert read_usage(f"a warning\n{step}\n").cost_usd == 0.25


def test_what_is_no_json_or_says_nothing_has_no_usage() -> None:
    for printed in (
        "",
        "The answer is 42.",
        "{broken",
        '{"type": "result"}',
        "[1, 2]",
        '{"stats": {"models": 5}}',
    ):
        assert read_usage(printed) == Usage()


def test_figures_that_are_none_are_ignored() -> None:
    printed = {
        "type": "result",
        "usage": {"input_tokens": "many", "output_tokens": -5},
        "total_cost_usd": "x",
    }

    assert read_usage(json.dumps(printed)) == Usage(0, None)
