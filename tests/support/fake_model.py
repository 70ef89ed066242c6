"""A model API on loopback that plays a script and records what the model would have seen.

It speaks the streaming forms of four APIs, whichever a client asks: Anthropic Messages (with `count_tokens`),
OpenAI Responses, OpenAI chat completions and Gemini `streamGenerateContent`. Agent CLIs run their whole loop
against it, without an account:

    with FakeModel([Call("read_file", {"filename": "a.js"}), Say("Done.")]) as model:
        subprocess.run(["claude", "-p", "Go."], env=model.environment("anthropic"), …)
    model.turns[-1].results      # what the model saw of the tool's result

Where each CLI takes the address from (give each its own HOME and working folder):

| CLI | how |
| --- | --- |
| `claude -p` | the environment of `environment("anthropic")` |
| `codex exec` | config.toml: `model_provider = "fake"` and `[model_providers.fake]` with a name, |
| | `wire_api = "responses"`, `base_url = model.url + "/v1"`, `env_key = "OPENAI_API_KEY"` |
| `gemini -p` | the environment of `environment("gemini")`; `security.auth.selectedType = "gemini-api-key"` |
| `qwen -p` | the environment of `environment("openai")` |
| `opencode run` | opencode.json: a provider of `@ai-sdk/openai-compatible` with `options.baseURL` |
| `cn -p` | config.yaml: a model of provider `openai` with `apiBase: model.url + "/v1"` |

A script is a list of turns, or a function from a `Turn` to the next one. In a list, a conversation is at the
turn after the calls that it already holds, so requests that a client repeats get the same answer. Requests
without tools (titles, summaries, checks of the key) are answered with a word and are not turns.

Tools are called by the server's own name: `Call("read_file")` finds `mcp__bitburner__read_file` and
`bitburner_read_file`. If a client has put the tools behind a search, the model searches first, as a real one
would. A call of a tool that is not there ends the conversation, and its name is in `model.missing`.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import TracebackType
from typing import Any, Literal, Self

Api = Literal["anthropic", "responses", "chat", "gemini"]
SEARCHES = ("ToolSearch", "tool_search")
"""Tools with which a client lets the model find the others."""
CALL_BY_NAME = "tool_call"
"""The tool with which Qwen Code calls what its search found."""
PROGRAM = "exec"
"""The tool with which newer models of Codex call all others, from a program."""
_PROGRAM = """\
const tool = ALL_TOOLS.find((one) => one.name.endsWith("__" + %s));
if (!tool) text("There is no such tool."); else text(await tools[tool.name](%s));"""
BYTES_PER_TOKEN = 4
"""For the usage that is reported; nothing depends on it being exact."""


@dataclass(frozen=True)
class Call:
    """The model calls a tool."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    search: str = ""
    """What a model would look for, where tools are found by their words; the tool's name if empty."""


@dataclass(frozen=True)
class Say:
    """The model answers, and its turn ends."""

    text: str


@dataclass(frozen=True)
class Tool:
    """A tool as a model is shown it."""

    name: str
    description: str
    schema: dict[str, Any]
    namespace: str | None = None
    """The group that it is in, for the API that has groups."""
    kind: str = "function"
    """`custom` takes a text, such as the program of Codex' `exec`; `tool_search` has a call of its own."""


@dataclass(frozen=True)
class Turn:
    """One request of a client, as the model reads it."""

    api: Api
    body: dict[str, Any]
    size: int
    """Bytes of the request."""
    tools: list[Tool]
    calls: list[str]
    """Names of the tools that the model called so far, as it called them."""
    results: list[str]
    """What came back for each of them; structure is JSON text, as the model reads it."""
    text: str
    """Everything else: the system prompt, instructions of servers, the user's words."""

    def find(self, tool: str) -> Tool | None:
        """Return the offered tool that is a server's `tool` under whatever name the client gave it."""
        own = [one for one in self.tools if one.name == tool]
        # A client's own tool may have the bare name, too.
        servers = [one for one in self.tools if one.name.endswith((f"_{tool}", f".{tool}", f"/{tool}"))]
        return next(iter([*(one for one in own if one.namespace), *servers, *own]), None)

    @property
    def last_result(self) -> str:
        """The newest result."""
        return self.results[-1] if self.results else ""


Script = Sequence[Call | Say] | Callable[[Turn], Call | Say]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients that end reset their connections."""


class FakeModel:
    """The API, as a context manager; the server runs in threads of its own."""

    def __init__(self, script: Script, model: str = "fake-model") -> None:
        self._script = script
        self.model = model
        self.turns: list[Turn] = []
        """Every request that had tools, oldest first."""
        self.others: list[dict[str, Any]] = []
        """The bodies of all other requests."""
        self.missing: list[str] = []
        """Tools that the script called and the client did not offer."""
        self._ids = count(1)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._make_handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def environment(self, api: Literal["anthropic", "openai", "gemini"]) -> dict[str, str]:
        """Return the variables that point a client at it."""
        if api == "anthropic":
            return {"ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "sk-ant-fake", **_QUIET}
        if api == "gemini":
            return {"GOOGLE_GEMINI_BASE_URL": self.url, "GEMINI_API_KEY": "fake"}
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": "fake",
            "OPENAI_MODEL": self.model,
        }

    def answer(self, path: str, body: dict[str, Any], size: int) -> tuple[str, bytes]:
        """Return the content type and the body of the answer to one request."""
        if path.endswith(("/count_tokens", ":countTokens")):
            tokens = size // BYTES_PER_TOKEN
            return _as_json({"input_tokens": tokens, "totalTokens": tokens})
        api, make, read = _find_api(path)
        turn = read(api, body, size)
        with self._lock:
            if turn.tools:
                self.turns.append(turn)
                said = self._next(turn)
            else:
                self.others.append(body)
                said = Say("ok")
            number = next(self._ids)
        whole, events = make(said, turn, self.model, number)
        is_stream = "streamGenerateContent" in path if api == "gemini" else body.get("stream", False)
        if not is_stream:
            return _as_json(whole)
        return "text/event-stream", b"".join(_encode_event(api, event) for event in events)

    def _next(self, turn: Turn) -> Call | Say:
        if callable(self._script):
            step = self._script(turn)
        else:
            position = sum(name not in SEARCHES for name in turn.calls)
            step = self._script[position] if position < len(self._script) else Say("The script is over.")
        if isinstance(step, Say):
            return step
        name = next((word for word in _words(turn.text) if word.endswith(f"__{step.tool}")), None)
        found = turn.find(step.tool)
        # A client's own tool may have the name of a server's tool that waits behind a search.
        if found is not None and not (name and found.name == step.tool and found.namespace is None):
            return step
        program = turn.find(PROGRAM)
        if program is not None and program.kind == "custom":
            return Call(PROGRAM, {"input": _PROGRAM % (json.dumps(step.tool), json.dumps(step.arguments))})
        search = next((turn.find(name) for name in SEARCHES if turn.find(name)), None)
        # Once: a search that did not bring the tool will not bring it the second time.
        if search is not None and (not turn.calls or turn.calls[-1] != search.name):
            if search.kind == "tool_search":
                return Call(search.name, {"query": step.search or step.tool.replace("_", " ")})
            query = f"select:{name}" if name else step.search or step.tool
            return Call(search.name, {"query": query, "max_results": 5})
        if name is not None and turn.find(CALL_BY_NAME) and name in turn.last_result:
            return Call(CALL_BY_NAME, {"name": name, "arguments": step.arguments})
        self.missing.append(step.tool)
        return Say(f"There is no tool {step.tool}.")

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                raw = self._read()
                try:
                    kind, answer = model.answer(self.path.partition("?")[0], json.loads(raw), len(raw))
                except (KeyError, ValueError) as problem:
                    self._send(400, "application/json", json.dumps({"error": repr(problem)}).encode())
                    return
                self._send(200, kind, answer)

            def do_GET(self) -> None:
                listed = {"object": "list", "data": [{"id": model.model, "object": "model"}], "models": []}
                self._send(200, *_as_json(listed))

            def do_HEAD(self) -> None:
                self._send(200, "text/plain", b"")

            def _read(self) -> bytes:
                if self.headers.get("transfer-encoding", "").lower() != "chunked":
                    return self.rfile.read(int(self.headers.get("content-length", "0")))
                pieces: list[bytes] = []
                while length := int(self.rfile.readline().partition(b";")[0], 16):
                    pieces.append(self.rfile.read(length))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(pieces)

            def _send(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *_args: object) -> None:
                """Say nothing."""

        return Handler


_QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1"}
Event = tuple[str, dict[str, Any]]
Made = tuple[dict[str, Any], list[Event]]
"""An answer in one piece, and as the events of a stream."""
Make = Callable[[Call | Say, Turn, str, int], Made]
Read = Callable[[Api, dict[str, Any], int], Turn]


def _find_api(path: str) -> tuple[Api, Make, Read]:
    if path.endswith("/messages"):
        return "anthropic", _make_anthropic, _read_anthropic
    if path.endswith("/responses"):
        return "responses", _make_responses, _read_responses
    if path.endswith("/chat/completions"):
        return "chat", _make_chat, _read_chat
    if path.endswith(("streamGenerateContent", "generateContent")):
        return "gemini", _make_gemini, _read_gemini
    raise ValueError(f"no model API has {path}")


def _as_json(value: Any) -> tuple[str, bytes]:
    return "application/json", json.dumps(value).encode()


def _encode_event(api: Api, event: Event) -> bytes:
    name, data = event
    head = f"event: {name}\n" if api in {"anthropic", "responses"} else ""
    done = "data: [DONE]\n\n" if name == "done" else ""
    return f"{head}data: {json.dumps(data)}\n\n{done}".encode()


def _usage(turn: Turn, said: Call | Say) -> tuple[int, int]:
    words = said.text if isinstance(said, Say) else said.tool + json.dumps(said.arguments)
    return max(1, turn.size // BYTES_PER_TOKEN), max(1, len(words) // BYTES_PER_TOKEN)


def _words(text: str) -> Iterator[str]:
    word = ""
    for letter in f"{text} ":
        if letter.isalnum() or letter in "_-":
            word += letter
        elif word:
            yield word
            word = ""


def _show(content: Any) -> str:
    """Return content as the model reads it: text as it is, anything else as JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            part["text"] if isinstance(part, dict) and isinstance(part.get("text"), str) else _show(part)
            for part in content
        )
    return json.dumps(content, ensure_ascii=False)


# Anthropic Messages


def _read_anthropic(api: Api, body: dict[str, Any], size: int) -> Turn:
    calls: list[str] = []
    results: list[str] = []
    texts = [_show(body.get("system", ""))]
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_use":
                calls.append(block["name"])
            elif block["type"] == "tool_result":
                results.append(_show(block.get("content", "")))
            elif block["type"] == "text":
                texts.append(block["text"])
    tools = [
        Tool(one["name"], one.get("description", ""), one.get("input_schema", {}))
        for one in body.get("tools", [])
    ]
    return Turn(api, body, size, tools, calls, results, "\n".join(texts))


def _make_anthropic(said: Call | Say, turn: Turn, model: str, number: int) -> Made:
    sent, made = _usage(turn, said)
    block: dict[str, Any]
    if isinstance(said, Say):
        start: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": said.text}
        block, reason = {"type": "text", "text": said.text}, "end_turn"
    else:
        name = _find(turn, said).name
        start = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(said.arguments)}
        block, reason = {**start, "input": said.arguments}, "tool_use"
    usage = {"input_tokens": sent, "output_tokens": made}
    message: dict[str, Any] = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": turn.body.get("model", model),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    whole = {**message, "content": [block], "stop_reason": reason, "usage": usage}
    ending = {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    events: list[tuple[str, dict[str, Any]]] = [
        ("message_start", {"message": message}),
        ("content_block_start", {"index": 0, "content_block": start}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", ending),
        ("message_stop", {}),
    ]
    return whole, [(name, {"type": name, **data}) for name, data in events]


def _find(turn: Turn, call: Call) -> Tool:
    tool = turn.find(call.tool)
    assert tool is not None  # `_next` has looked
    return tool


# OpenAI Responses


def _read_responses(api: Api, body: dict[str, Any], size: int) -> Turn:
    calls: list[str] = []
    results: list[str] = []
    texts = [body.get("instructions") or ""]
    items = body["input"]
    for item in [{"type": "message", "content": items}] if isinstance(items, str) else items:
        kind = item.get("type", "message")
        if kind == "message":
            texts.append(_show(item["content"]))
        elif kind in {"function_call", "custom_tool_call", "tool_search_call"}:
            calls.append(item.get("name", "tool_search"))
        elif kind in {"function_call_output", "custom_tool_call_output"}:
            results.append(_show(item["output"]))
        elif kind == "tool_search_output":
            results.append(_show(item["tools"]))
    tools: list[Tool] = []
    # Newer models get their tools, and what a search found, among the messages.
    among = [tool for item in items if isinstance(item, dict) for tool in item.get("tools", [])]
    for one in [*body.get("tools", []), *among]:
        # A server's tools may be in a namespace; a tool that is no function, such as a search, has no name.
        namespace = one["name"] if one["type"] == "namespace" else None
        if namespace:
            texts.append(one.get("description", ""))  # Codex puts a server's instructions here
        for each in one["tools"] if namespace else [one]:
            name = each.get("name", each["type"])
            about = each.get("description", "")
            tools.append(Tool(name, about, each.get("parameters", {}), namespace, each["type"]))
    return Turn(api, body, size, tools, calls, results, "\n".join(texts))


def _make_responses(said: Call | Say, turn: Turn, model: str, number: int) -> Made:
    sent, made = _usage(turn, said)
    item: dict[str, Any]
    if isinstance(said, Say):
        content = {"type": "output_text", "text": said.text, "annotations": []}
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [content]}
    else:
        tool = _find(turn, said)
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": tool.name}
        if tool.kind == "custom":
            item |= {"type": "custom_tool_call", "input": said.arguments["input"]}
        elif tool.kind == "tool_search":
            del item["name"]
            item |= {"type": "tool_search_call", "execution": "client", "arguments": said.arguments}
        else:
            item["arguments"] = json.dumps(said.arguments)
        if tool.namespace is not None and tool.kind == "function":
            item["namespace"] = tool.namespace
    response: dict[str, Any] = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": turn.body.get("model", model),
        "status": "in_progress",
        "output": [],
    }
    usage = {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sent + made,
    }
    whole = {**response, "status": "completed", "output": [{**item, "status": "completed"}], "usage": usage}
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": response}),
        ("response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress"}}),
        ("response.output_item.done", {"output_index": 0, "item": {**item, "status": "completed"}}),
        ("response.completed", {"response": whole}),
    ]
    return whole, [
        (name, {"type": name, "sequence_number": place, **data}) for place, (name, data) in enumerate(events)
    ]


# OpenAI chat completions


def _read_chat(api: Api, body: dict[str, Any], size: int) -> Turn:
    calls: list[str] = []
    results: list[str] = []
    texts: list[str] = []
    for message in body["messages"]:
        calls += [one["function"]["name"] for one in message.get("tool_calls") or []]
        content = _show(message.get("content") or "")
        (results if message["role"] == "tool" else texts).append(content)
    tools = [
        Tool(one["name"], one.get("description", ""), one.get("parameters", {}))
        for one in (tool["function"] for tool in body.get("tools") or [])
    ]
    return Turn(api, body, size, tools, calls, results, "\n".join(texts))


def _make_chat(said: Call | Say, turn: Turn, model: str, number: int) -> Made:
    sent, made = _usage(turn, said)
    usage = {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made}
    if isinstance(said, Say):
        message: dict[str, Any] = {"role": "assistant", "content": said.text}
        delta, reason = message, "stop"
    else:
        function = {"name": _find(turn, said).name, "arguments": json.dumps(said.arguments)}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        delta, reason = {**message, "tool_calls": [{"index": 0, **call}]}, "tool_calls"
    head = {
        "id": f"chatcmpl-{number}",
        "created": 1_700_000_000,
        "model": turn.body.get("model", model),
    }
    choice = {"index": 0, "message": message, "finish_reason": reason}
    whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
    chunk = {**head, "object": "chat.completion.chunk"}
    return whole, [
        ("chunk", {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}),
        ("chunk", {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
        ("done", {**chunk, "choices": [], "usage": usage}),
    ]


# Gemini


def _read_gemini(api: Api, body: dict[str, Any], size: int) -> Turn:
    calls: list[str] = []
    results: list[str] = []
    texts: list[str] = []
    for content in [body.get("systemInstruction") or {}, *body["contents"]]:
        for part in content.get("parts", []):
            if "functionCall" in part:
                calls.append(part["functionCall"]["name"])
            elif "functionResponse" in part:
                response = part["functionResponse"]["response"]
                results.append(_show(response.get("output", response)))
            elif "text" in part:
                texts.append(part["text"])
    tools = [
        Tool(
            one["name"],
            one.get("description", ""),
            one.get("parametersJsonSchema", one.get("parameters", {})),
        )
        for group in body.get("tools") or []
        for one in group.get("functionDeclarations", [])
    ]
    return Turn(api, body, size, tools, calls, results, "\n".join(texts))


def _make_gemini(said: Call | Say, turn: Turn, model: str, number: int) -> Made:
    sent, made = _usage(turn, said)
    if isinstance(said, Say):
        part: dict[str, Any] = {"text": said.text}
    else:
        part = {
            "functionCall": {"name": _find(turn, said).name, "args": said.arguments, "id": f"call{number}"}
        }
    answer = {
        "candidates": [
            {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0},
        ],
        "usageMetadata": {
            "promptTokenCount": sent,
            "candidatesTokenCount": made,
            "totalTokenCount": sent + made,
        },
        "modelVersion": model,
    }
    return answer, [("chunk", answer)]
