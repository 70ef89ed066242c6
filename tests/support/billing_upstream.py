"""A Mercury chat API that bills each request on receipt and then misbehaves.

A request is billed when its whole body has arrived, before anything else happens with it. The bill goes into
a journal, which is the only truth about what was charged. Refusals (4xx, for 408 sometimes) are not billed.
What happens afterwards is drawn from the seed, the body, and how often that body has come before. So a call
meets the same faults in every run with the same seed, whatever its timing and whichever process sends it.

Runs inside a test (`async with BillingUpstream(...)`) or as a process of its own:

    python -m tests.support.billing_upstream --port 15001 --seed 7 --journal bills.jsonl
"""

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from bridgehead.mercury.simulator import rendering
from bridgehead.mercury.simulator.answers import Answer
from bridgehead.mercury.simulator.catalogue import MODELS, Model, Pricing
from bridgehead.mercury.simulator.refusals import Refusal
from bridgehead.mercury.simulator.wire import ChatRequest
from tests.support.tcp import close_with_reset
from tests.support.waiting import PATIENCE

HOST = "127.0.0.1"
BILLION = 10**9
EXTREME_SHARE = 0.1
"""How often a request costs the most that it can: as many tokens as bytes, and an answer of full length."""
CACHED_SHARE = 0.2
LONGEST_TEXT = 8
"""Words of an answer; the rest of its tokens is reasoning, so that expensive answers stay small."""
DEAF_SECONDS = (0.02, 0.12)
GARBAGE = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
MODELS_BY_ID = {model.id: model for model in MODELS}


# --- faults ------------------------------------------------------------------------------------------------


class Fault(Struct, frozen=True):
    """What the upstream does with a request that it has read (and billed)."""

    name: str
    weight: int = 2
    """How often it is drawn, beside the others."""
    status: int = 200
    headers: tuple[str, ...] = ()
    is_billed: bool = True
    usage: Literal["tokens", "cost", "none"] = "tokens"
    """What the answer reports; with `cost` that is what was charged, and less than the list price."""
    content: Literal["answer", "error", "garbage", "no http"] = "answer"
    leaves_out: tuple[str, ...] = ()
    """Which of the last events of a stream are missing: finish, usage, done. Only for streams."""
    sent: Literal["all", "nothing", "half of the head", "half of the body"] = "all"
    end: Literal["keep", "close", "reset", "hang", "deaf"] = "keep"
    """What becomes of the connection; `deaf` also closes the listener and idle connections for a moment."""
    delay: float = 0.0
    """Seconds before the connection ends."""

    @property
    def is_refusal(self) -> bool:
        """Whether it says that no work was done, as every 4xx status does but 408."""
        return 400 <= self.status < 500 and self.status != 408

    @property
    def tells_usage(self) -> bool:
        """Whether a client that reads everything learns what it was charged."""
        is_answer = self.status == 200 and self.content == "answer" and self.sent == "all"
        return is_answer and self.usage != "none" and "usage" not in self.leaves_out

    @property
    def is_certain(self) -> bool:
        """Whether such a client has no doubt about the answer either."""
        return self.is_refusal or (self.tells_usage and not self.leaves_out)

    @property
    def leaves_gap(self) -> bool:
        """Whether later requests may be written to a connection that nobody reads from any more."""
        return self.end == "deaf" or (self.end == "close" and self.tells_usage)


FAULTS = (
    Fault("good", 40),
    Fault("cost", 8, usage="cost"),
    Fault("no usage", 4, usage="none"),
    *(Fault(str(status), status=status, is_billed=False) for status in (400, 401, 402, 404, 408, 429)),
    Fault("408 billed", status=408),
    Fault("429 seconds", status=429, is_billed=False, headers=("Retry-After: 0",)),
    Fault("429 milliseconds", status=429, is_billed=False, headers=("retry-after-ms: 15",)),
    *(Fault(str(status), 3, status=status) for status in (500, 502, 503, 504)),
    # A kept connection that closes without a byte. Common HTTP clients send the request again.
    *(Fault(f"silent {ms}", sent="nothing", end="close", delay=ms / 1000) for ms in (0, 5, 50, 150)),
    Fault("half head", sent="half of the head", end="close"),
    Fault("half body", sent="half of the body", end="close"),
    Fault("reset", sent="nothing", end="reset"),
    Fault("reset midway", sent="half of the body", end="reset"),
    Fault("hang", sent="nothing", end="hang"),
    Fault("stall", sent="half of the body", end="hang"),
    Fault("garbage", content="garbage"),
    Fault("no http", content="no http", end="close"),
    Fault("error in 200", content="error"),
    Fault("deaf", end="deaf"),
    # Answers well and closes the idle connection a little later, maybe just when the next request comes.
    *(Fault(f"idle close {ms}", end="close", delay=ms / 1000) for ms in (0, 5, 50)),
    Fault("no finish", leaves_out=("finish",)),
    Fault("no done", leaves_out=("done",)),
    Fault("no end", leaves_out=("finish", "usage", "done")),
    Fault("only done", leaves_out=("finish", "usage")),
)
BY_NAME = {fault.name: fault for fault in FAULTS}
GAPS = tuple(fault.name for fault in FAULTS if fault.leaves_gap)


# --- bills -------------------------------------------------------------------------------------------------


class Bill(Struct, frozen=True):
    """One line of the journal: a request that arrived whole."""

    number: int
    time: float
    call: str
    """The prompt up to its first colon, by which a test recognises its calls."""
    fault: str
    charge_usd: float
    most_usd: float
    """What the request could have cost at most."""


def read_journal(path: Path) -> list[Bill]:
    """Read what was billed so far."""
    decode = msgspec.json.Decoder(Bill).decode
    return [decode(line) for line in path.read_bytes().splitlines()] if path.exists() else []


class Prices(Struct, frozen=True):
    """Prices of a token in billionths of a dollar: sums of whole numbers have no rounding error."""

    prompt: int
    completion: int
    cached: int

    @classmethod
    def of(cls, model: Model) -> "Prices":
        """Return the list prices of a model."""
        listed = model.pricing
        texts = (listed.prompt, listed.completion, listed.input_cache_reads)
        return cls(*(int(Decimal(text) * BILLION) for text in texts))

    def most_usd(self, request_bytes: int, max_tokens: int) -> float:
        """Return what a request can cost at most: a token has at least one byte."""
        return (request_bytes * self.prompt + max_tokens * self.completion) / BILLION

    def charge(self, answer: Answer) -> int:
        """Return what an answer costs, in billionths."""
        full = answer.prompt_tokens - answer.cached_tokens
        prompt = full * self.prompt + answer.cached_tokens * self.cached
        return prompt + answer.completion_tokens * self.completion


# --- responses ---------------------------------------------------------------------------------------------


def make_answer(body: bytes, request: ChatRequest, draw: random.Random) -> Answer:
    """Draw how long the prompt and the answer are, in tokens."""
    model = MODELS_BY_ID[request.model]
    limit = request.max_completion_tokens or request.max_tokens or model.max_output_length
    is_extreme = draw.random() < EXTREME_SHARE
    prompt = len(body) if is_extreme else draw.randint(len(body) // 4, len(body))
    completion = limit if is_extreme else draw.randint(1, limit)
    words = [f" word{number}" for number in range(min(completion, LONGEST_TEXT))]
    return Answer(
        model,
        words,
        "length" if completion == limit else "stop",
        prompt,
        cached_tokens=draw.randint(0, prompt) if draw.random() < CACHED_SHARE else 0,
        reasoning_tokens=completion - len(words),
    )


def render(
    request: ChatRequest, answer: Answer, fault: Fault, charge_usd: float
) -> tuple[bytes, list[bytes]]:
    """Return the head and the pieces of the body as they would be sent if nothing cut them."""
    if fault.content == "no http":
        return b"\x16\x03\x01 this is not HTTP\r\n\r\n", []
    if fault.status != 200:
        return _frame(fault.status, Refusal(fault.status).body, fault.headers)
    if fault.content == "garbage":
        return _frame(200, GARBAGE)
    if request.stream:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        events = _events(answer, fault, charge_usd)
        return head, [*(b"%x\r\n%b\r\n" % (len(event), event) for event in events), b"0\r\n\r\n"]
    if fault.content == "error":
        return _frame(200, Refusal(500).body)
    whole = rendering.whole(answer, rendering.Envelope("chatcmpl-1", 0), "chat.completion")
    return _frame(200, _report(whole.body, fault, charge_usd))


def _frame(status: int, body: bytes, headers: Iterable[str] = ()) -> tuple[bytes, list[bytes]]:
    lines = [f"HTTP/1.1 {status} So", "content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode(), [body]


def _events(answer: Answer, fault: Fault, charge_usd: float) -> Iterator[bytes]:
    envelope = rendering.Envelope("chatcmpl-1", 0)
    stream = rendering.streamed_chat(answer, envelope, diffusing=False, with_usage=True)
    yield stream.opening
    if fault.content == "error":
        yield next(stream.deltas)
        yield b"data: " + Refusal(500).body + b"\n\n"
        return
    yield from stream.deltas
    if "finish" not in fault.leaves_out:
        yield stream.finish
    if "usage" not in fault.leaves_out:
        yield b"data: " + _report(stream.usage.removeprefix(b"data: "), fault, charge_usd) + b"\n\n"
    if "done" not in fault.leaves_out:
        yield rendering.DONE


def _report(body: bytes, fault: Fault, charge_usd: float) -> bytes:
    """Add to the usage in a body what was charged, or leave the usage out."""
    if fault.usage == "tokens":
        return body
    decoded: dict[str, Any] = msgspec.json.decode(body)
    if fault.usage == "none":
        del decoded["usage"]
    else:
        decoded["usage"]["cost"] = charge_usd
    return msgspec.json.encode(decoded)


# --- the server --------------------------------------------------------------------------------------------


class BillingUpstream:
    """The API on a socket, and its journal."""

    def __init__(
        self,
        seed: int = 0,
        *,
        port: int = 0,
        journal: Path | None = None,
        without: Collection[str] = (),
        only: Collection[str] = (),
    ) -> None:
        self.port = port
        self.bills: list[Bill] = []
        self.price_factor = 1
        """By how much the prices are above those of the simulator."""
        self._seed = seed
        self._journal = None if journal is None else journal.open("ab", buffering=0)
        self._drawn = [f for f in FAULTS if f.name not in without and (not only or f.name in only)]
        self._seen: Counter[bytes] = Counter()
        """How often each body has come."""
        self._server: asyncio.Server | None = None
        self._idle: set[asyncio.StreamWriter] = set()
        """Kept connections on which no request is under way."""
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        """What belongs into MERCURY_API_URL."""
        return f"http://{HOST}:{self.port}/v1"

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._server is not None:
            self._server.close()
        if self._journal is not None:
            self._journal.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _be_deaf(self, seconds: float) -> None:
        """Refuse connections for a moment, as a server that restarts; what is under way goes on."""
        server, self._server = self._server, None
        if server is None:  # it is deaf already
            return
        server.close()
        for writer in self._idle:
            writer.close()
        await asyncio.sleep(seconds)
        await self._listen()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went, or the test has ended
        finally:
            self._idle.discard(writer)
            self._tasks.discard(task)
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read and answer one request; returns whether the connection is kept."""
        self._idle.add(writer)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self._idle.discard(writer)
        lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if lines[0].startswith("GET /v1/models "):
            listed = [replace(model, pricing=self._raise(model.pricing)) for model in MODELS]
            frame, pieces = _frame(200, msgspec.json.encode({"object": "list", "data": listed}))
            writer.writelines([frame, *pieces])
            return True
        if not lines[0].startswith("POST /v1/chat/completions "):
            frame, pieces = _frame(404, Refusal(404).body)
            writer.writelines([frame, *pieces])
            return True
        return await self._complete(body, reader, writer)

    def _raise(self, prices: Pricing) -> Pricing:
        raised = {name: str(Decimal(text) * self.price_factor) for name, text in asdict(prices).items()}
        return Pricing(**raised)

    async def _complete(
        self, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        self._seen[body] += 1
        draw = random.Random(b"%d %d " % (self._seed, self._seen[body]) + body)  # noqa: S311 - repeatable
        request = msgspec.json.decode(body, type=ChatRequest)
        drawable = [fault for fault in self._drawn if request.stream or not fault.leaves_out]
        (fault,) = draw.choices(drawable, [fault.weight for fault in drawable])
        answer = make_answer(body, request, draw)
        charge_usd = self._bill(body, request, answer, fault, draw)

        head, pieces = render(request, answer, fault, charge_usd)
        if fault.sent == "nothing":
            head, pieces = b"", []
        elif fault.sent == "half of the head":
            head, pieces = head[: len(head) // 2], []
        elif fault.sent == "half of the body":
            whole = b"".join(pieces)
            pieces = [whole[: len(whole) // 2]]
        writer.write(head)
        for piece in pieces:
            writer.write(piece)
            await asyncio.wait_for(writer.drain(), PATIENCE)
            await asyncio.sleep(0)  # so that a stream comes in pieces
        return await self._end(fault, draw, reader, writer)

    def _bill(
        self, body: bytes, request: ChatRequest, answer: Answer, fault: Fault, draw: random.Random
    ) -> float:
        """Write the bill down before anything else happens; returns the charge in dollars."""
        prices = Prices.of(replace(answer.model, pricing=self._raise(answer.model.pricing)))
        charge = prices.charge(answer)
        if fault.usage == "cost":
            charge -= draw.randint(0, charge // 2)
        charge_usd = charge / BILLION if fault.is_billed else 0.0
        limit = request.max_completion_tokens or request.max_tokens or answer.model.max_output_length
        bill = Bill(
            len(self.bills) + 1,
            time.time(),
            request.messages[-1].text.partition(":")[0],
            fault.name,
            charge_usd,
            prices.most_usd(len(body), limit),
        )
        self.bills.append(bill)
        if self._journal is not None:
            self._journal.write(msgspec.json.encode(bill) + b"\n")  # unbuffered: the system has it now
        return charge_usd

    async def _end(
        self, fault: Fault, draw: random.Random, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Do with the connection what the fault says; returns whether it is kept."""
        await asyncio.sleep(fault.delay)
        if fault.end == "reset":
            close_with_reset(writer)
        elif fault.end == "hang":
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    while await reader.read(1024):  # until the client gives up
                        pass
        elif fault.end == "deaf":
            task = asyncio.create_task(self._be_deaf(draw.uniform(*DEAF_SECONDS)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return fault.end == "keep"


async def _run(options: argparse.Namespace) -> None:
    upstream = BillingUpstream(
        options.seed, port=options.port, journal=options.journal, without=options.without
    )
    async with upstream:
        sys.stdout.write(upstream.url + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    """Serve until somebody ends the process."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.billing_upstream")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--journal", type=Path, required=True, help="the file that bills are appended to")
    parser.add_argument("--without", action="append", default=[], metavar="FAULT", choices=BY_NAME)
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
