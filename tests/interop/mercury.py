"""The mercury bridge, called by the Inspector, against two upstreams: the simulated API, and aimock.

Owns the calls and the right answers. aimock was written by others for the OpenAI shape, so what the bridge
expects of an upstream is not only what its own simulator happens to send.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.interop.check import Check
from tests.interop.inspector import INSPECTOR
from tests.interop.server_process import listening
from tests.support.aimock import Aimock, Fixture, mocking
from tests.support.ports import free_port

BRIDGE = (sys.executable, "-m", "bridgehead", "mercury")
CHAT_PATH = "/v1/chat/completions"
TOOL_FAILED = 5
"""What the Inspector exits with when a tool says that it failed."""
FAILING = "error: "
"""How the title of a call begins that has to fail."""
ORDINARY = "This is an ordinary answer, long enough for several chunks of a stream."
EMOJI = "a😀b😁c😂d🤣e😃f😄"
TOOL = {"type": "function", "function": {"name": "measure", "parameters": {"type": "object"}}}
FIXTURES: list[Fixture] = [
    {"match": {"userMessage": "ordinary"}, "response": {"content": ORDINARY}},
    {
        "match": {"userMessage": "measure"},
        "response": {"toolCalls": [{"name": "measure", "arguments": '{"what":"it"}'}]},
    },
    {"match": {"userMessage": "as json"}, "response": {"content": '{"fine": true}'}},
    # Three UTF-16 units a chunk: each of these is cut in two somewhere.
    {"match": {"userMessage": "emoji"}, "response": {"content": EMOJI}, "chunkSize": 3},
    {"match": {"userMessage": "think"}, "response": {"content": "So be it.", "reasoning": "Hm, well."}},
    {"match": {"inputText": "vector"}, "response": {"embedding": [0.25, -0.5]}},
    {
        "match": {"userMessage": "busy", "sequenceIndex": 0},
        "response": {
            "error": {"message": "Slow down", "type": "rate_limit_error"},
            "status": 429,
            "retryAfter": 1,
        },
    },
    {"match": {"userMessage": "busy"}, "response": {"content": "Now it works."}},
    {
        "match": {"userMessage": "down"},
        "response": {"error": {"message": "Overloaded", "type": "server_error"}, "status": 503},
    },
    {
        "match": {"userMessage": "unpaid"},
        "response": {"error": {"message": "No credits", "type": "billing_error"}, "status": 402},
    },
    {
        "match": {"userMessage": "cut"},
        "response": {"content": ORDINARY},
        "truncateAfterChunks": 3,
        "latency": 50,
    },
    {"match": {"userMessage": "broken"}, "response": {"content": ORDINARY}, "chaos": {"malformedRate": 1}},
]

Judge = Callable[[Any], None]


@dataclass(frozen=True)
class Upstreams:
    """What the bridge is pointed at."""

    simulated: str
    aimock: Aimock


@contextmanager
def upstreams(node: str, folder: Path) -> Iterator[Upstreams]:
    """Run both upstreams; what they need is written into a folder."""
    port = free_port()
    simulator = [*BRIDGE, "simulate", "--port", str(port), "--delay-ms", "0"]
    with listening(simulator, port) as address, mocking(node, FIXTURES, folder) as mock:
        yield Upstreams(f"{address}/v1", mock)


def checks(node: str, found: Upstreams, home: Path) -> list[Check]:
    """Every tool against the simulated API, and what aimock can say against aimock."""
    program = (node, str(INSPECTOR.home / "clients" / "launcher" / "build" / "index.js"), "--cli")
    upstream_checks = {
        "simulated": (found.simulated, _simulated_calls()),
        "aimock": (found.aimock.url, _aimock_calls(found.aimock)),
    }
    return [
        Check(
            name=f"mercury, inspector {INSPECTOR.version}, {name}, {title}",
            command=(*program, *BRIDGE, *_settings(url, home), *arguments, "--format", "json"),
            judge=_of_result(judge),
            environment={"HOME": str(home)},
            status=TOOL_FAILED if title.startswith(FAILING) else 0,
        )
        for name, (url, calls) in upstream_checks.items()
        for title, arguments, judge in calls
    ]


def _settings(url: str, home: Path) -> tuple[str, ...]:
    settings = {
        "MERCURY_API_URL": url,
        "MERCURY_API_KEY": "sk_interop_0123456789",
        "MERCURY_MODEL": "mercury-2",
        "MERCURY_EMBEDDING_MODEL": "text-embedding-3-small",
        "MERCURY_RETRY_DELAY": "10",
        "BRIDGEHEAD_STATE_DIR": str(home / "state"),
    }
    return tuple(word for name, value in settings.items() for word in ("-e", f"{name}={value}"))


def _of_result(judge: Judge) -> Callable[[str], None]:
    return lambda output: judge(json.loads(output)["result"])


def _call(tool: str, **arguments: Any) -> tuple[str, ...]:
    return ("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))


def _chat(said: str, tool: str = "mercury_chat_completion", **more: Any) -> tuple[str, ...]:
    return _call(tool, messages=[{"role": "user", "content": said}], **more)


# --- the simulated API -------------------------------------------------------------------------------------


def _simulated_calls() -> list[tuple[str, tuple[str, ...], Judge]]:
    gap = {"prompt": "def f():\n", "suffix": "f()\n", "model": "mercury-edit-2"}
    edit = {"prompt": "<|code_to_edit|>x = 1<|/code_to_edit|>", "model": "mercury-edit-2"}
    tools = ("--method", "tools/list", "--strict")
    return [
        ("tools/list", tools, lambda result: _has("mercury_batch", [t["name"] for t in result["tools"]])),
        ("chat", _chat("Hello?"), _says("You asked: “Hello?”")),
        ("stream", _chat("Hello?", "mercury_chat_stream"), _says("You asked: “Hello?”")),
        ("diffusing", _chat("Hello?", "mercury_chat_stream", diffusing=True), _says("You asked: “Hello?”")),
        ("fim", _call("mercury_fim_completion", **gap), _says("    ")),
        ("edit", _call("mercury_edit_completion", **edit), _says("x = 1\n# checked")),
        ("batch", _call("mercury_batch", prompts=["One?", "Two?"]), _says("You asked: “Two?”")),
        ("models", _call("mercury_list_models"), _says("mercury-3")),
        ("usage", _call("mercury_usage"), _says("since_start")),
        (
            f"{FAILING}unknown model",
            _chat("Hello?", model="mercury-9"),
            _fails("validation_error", "MODEL_NOT_FOUND"),
        ),
        ("prompts/list", ("--method", "prompts/list"), lambda result: _has("explain", str(result))),
        ("resource", ("--method", "resources/read", "--uri", "mercury://models"), _reads("mercury-3")),
    ]


# --- aimock ------------------------------------------------------------------------------------------------


def _aimock_calls(aimock: Aimock) -> list[tuple[str, tuple[str, ...], Judge]]:
    as_json = _chat("this as json", response_format={"type": "json_object"})
    return [
        ("chat", _chat("an ordinary question"), _says(ORDINARY)),
        ("stream", _chat("an ordinary question", "mercury_chat_stream"), _says(ORDINARY)),
        ("tool call", _chat("measure it", tools=[TOOL]), _calls_measure),
        ("streamed tool call", _chat("measure it", "mercury_chat_stream", tools=[TOOL]), _calls_measure),
        ("json", as_json, _says('{"fine": true}')),
        ("emoji cut in two", _chat("an emoji", "mercury_chat_stream"), _says(EMOJI)),
        ("reasoning", _chat("think first"), _reasons),
        ("streamed reasoning", _chat("think first", "mercury_chat_stream"), _reasons),
        ("embeddings", _call("mercury_embeddings", input=["a vector"]), _says("[[0.25,-0.5]]")),
        ("429, then an answer", _chat("you are busy"), _took(aimock, "busy", 2, _says("Now it works."))),
        (
            f"{FAILING}503",
            _chat("you are down"),
            _took(aimock, "down", 4, _fails("api_error", "SERVICE_UNAVAILABLE")),
        ),
        (
            f"{FAILING}402",
            _chat("unpaid"),
            _took(aimock, "unpaid", 1, _fails("auth_error", "BILLING_REQUIRED")),
        ),
        (
            f"{FAILING}cut stream",
            _chat("a cut", "mercury_chat_stream"),
            _took(aimock, "cut", 1, _fails("api_error", "CONNECTION_LOST")),
        ),
        (f"{FAILING}broken JSON", _chat("a broken one"), _fails("api_error", "BAD_RESPONSE")),
        ("models", _call("mercury_list_models"), _says('"owned_by":"aimock"')),
    ]


def _says(text: str) -> Judge:
    def judge(result: Any) -> None:
        assert not result.get("isError"), result["content"]
        said = result["content"][0]["text"]
        assert text in said, f"{text!r} is not in {said[:200]!r}"

    return judge


def _fails(kind: str, code: str | None = None) -> Judge:
    def judge(result: Any) -> None:
        assert result["isError"], "it should have failed"
        error = json.loads(result["content"][0]["text"])["error"]
        assert error["type"] == kind, error
        assert code in {None, error["code"]}, error

    return judge


def _reads(text: str) -> Judge:
    return lambda result: _has(text, result["contents"][0]["text"])


def _has(text: str, whole: Any) -> None:
    assert text in whole, f"{text!r} is not there"


def _calls_measure(result: Any) -> None:
    assert not result.get("isError"), result["content"]
    (call,) = result["structuredContent"]["tool_calls"]
    assert call["function"] == {"name": "measure", "arguments": '{"what":"it"}'}, call


def _reasons(result: Any) -> None:
    _says("So be it.")(result)
    assert result["structuredContent"]["reasoning"] == "Hm, well.", result["structuredContent"]


def _took(aimock: Aimock, word: str, count: int, judge: Judge) -> Judge:
    """Judge an answer, and how many requests were made for it."""

    def judge_both(result: Any) -> None:
        judge(result)
        made = [
            request
            for request in aimock.journal(CHAT_PATH)
            if word in request["body"]["messages"][-1]["content"]
        ]
        assert len(made) == count, f"{len(made)} requests instead of {count}"

    return judge_both
