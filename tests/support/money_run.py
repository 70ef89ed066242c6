"""A run about money: real bridges, killed and started again, against an upstream that bills and misbehaves.

Afterwards what the bridges say (`bridgehead mercury usage`, their audit log, their answers) is compared with
the upstream's own journal. Calls, faults and the calls after which a process is killed follow from the seed;
only the timing differs between two runs of one plan.
"""

import asyncio
import math
import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec

from tests.mercury.process import (
    LARGEST,
    MODEL,
    PATIENCE,
    ROOT,
    BridgeProcess,
    command,
    environment,
    error_of,
    started,
)
from tests.support import billing_upstream
from tests.support.billing_upstream import BY_NAME, MODELS_BY_ID, Bill, Prices
from tests.support.messages import Json
from tests.support.ports import free_port
from tests.support.posix import dying_with_us

TOLERANCE = 1e-9
"""Dollars. Every charge is a whole number of billionths."""
RETRIES = 3
WINDOW = 6
"""Calls that each bridge has under way."""
MAX_TOKENS = 400
LONGEST_PADDING = 600
ENVELOPE_BYTES = 300
"""More than the bytes of a request beside its prompt."""
CANCEL_SECONDS = (0.003, 0.03, 0.3)
"""A call is cancelled within one of these: before it is sent, while it is answered, or while it hangs."""
EXPIRY_SECONDS = 180.0
SETTINGS = {
    # Short, because a share of the requests is never answered.
    "REQUEST_TIMEOUT": "400",
    "MERCURY_IDLE_TIMEOUT": "400",
    "MERCURY_TOTAL_TIMEOUT": "4000",
    "MERCURY_MAX_RETRIES": str(RETRIES),
    "CACHE_ENABLED": "false",
    "LOG_CONTENT": "true",  # the audit log then has the prompt, which names the call
}
NOT_SENT = ("CONNECTION_FAILED", "PRICE_UNKNOWN")
PAUSE = 0.1
LOST = ("CONNECTION_LOST", "TIMEOUT", "CANCELLED")
"""Outcomes of calls whose last send may have arrived or not, and may have been answered or not."""


@dataclass(frozen=True)
class Plan:
    """What is done in a run."""

    calls: int
    budget_usd: float
    seed: int
    kills: int = 0
    bridges: int = 1
    """Bridge processes at a time. With a database each has a state folder of its own, as on two machines."""
    database_url: str = ""
    cancelled_share: float = 0.1
    without: tuple[str, ...] = ()
    """Faults that the upstream leaves out."""


@dataclass(frozen=True)
class PlannedCall:
    """One call of a plan."""

    name: str
    tool: str
    arguments: Json
    most_usd: float
    """What one send of it can cost at most, and a little more."""
    cancel_after: float | None
    """Seconds after which the client cancels it, if it has not been answered by then."""


@dataclass
class Life:
    """One process from its start to its end."""

    client: BridgeProcess
    log: Path
    is_killed: bool = False
    calls: set[str] = field(default_factory=set)
    """Names of the calls that it was sent."""
    answers: dict[str, Json] = field(default_factory=dict)
    """By call, the results that came, errors among them."""

    @cached_property
    def audit(self) -> dict[str, tuple[str, int]]:
        """By call, the outcome and the tries in the audit log.

        A killed process has lines for some of its calls. Any other has one for each call that it has begun,
        which it has not if the call was cancelled at once.
        """
        found = {} if self.is_killed else dict.fromkeys(self.calls, ("(not begun)", 0))
        for line in self.log.read_bytes().splitlines(keepends=True):
            if self.is_killed and not line.endswith(b"\n"):
                break
            entry = msgspec.json.decode(line)
            if entry["event"] == "call" and "prompt" in entry:
                prompt: str = msgspec.json.decode(entry["prompt"])["messages"][-1]["content"]
                found[prompt.partition(":")[0]] = (entry["outcome"], entry["tries"])
        return found


def plan_calls(plan: Plan) -> list[PlannedCall]:
    """Draw the calls of a run."""
    draw = random.Random(plan.seed)  # noqa: S311 - to be repeated, not to be secret
    return [_plan_call(number, plan.cancelled_share, draw) for number in range(plan.calls)]


def _plan_call(number: int, cancelled_share: float, draw: random.Random) -> PlannedCall:
    name = f"call {number}"
    content = f"{name}: {'x' * draw.randint(0, LONGEST_PADDING)}"
    max_tokens = draw.randint(1, MAX_TOKENS)
    limit = draw.choice(("max_tokens", "max_completion_tokens"))
    return PlannedCall(
        name,
        draw.choice(("mercury_chat_completion", "mercury_chat_stream")),
        {"messages": [{"role": "user", "content": content}], limit: max_tokens},
        Prices.of(MODELS_BY_ID[MODEL]).most_usd(len(content) + ENVELOPE_BYTES, max_tokens),
        draw.uniform(0, draw.choice(CANCEL_SECONDS)) if draw.random() < cancelled_share else None,
    )


# --- the run -----------------------------------------------------------------------------------------------


class Bridge:
    """A bridge that is started again whenever it has been killed."""

    def __init__(self, name: str, state: Path, folder: Path, url: str, settings: dict[str, str]) -> None:
        self._name = name
        self._folder = folder
        # Measured processes that are killed would leave half a file of coverage.
        variables = environment(url, state, **settings)
        self._variables = {name: value for name, value in variables.items() if not name.startswith("COV")}
        self.lives: list[Life] = []
        self.is_up = asyncio.Event()

    async def start(self) -> None:
        log = self._folder / f"{self._name}-{len(self.lives)}.log"
        with log.open("wb") as stderr:
            process = await started(self._variables, stderr, LARGEST)
        client = BridgeProcess(process, log)
        self.lives.append(Life(client, log))
        await client.shake_hands()
        self.is_up.set()

    async def kill(self) -> None:
        self.is_up.clear()
        self.lives[-1].is_killed = True
        await self.lives[-1].client.kill()

    async def end(self) -> None:
        self.is_up.clear()
        code = await self.lives[-1].client.end()
        assert code == 0, self.lives[-1].log.read_text(encoding="utf-8")[-2000:]

    async def call(self, planned: PlannedCall) -> None:
        """Make a call and keep its answer; there is none if it is cancelled or the process is killed."""
        await asyncio.wait_for(self.is_up.wait(), PATIENCE)
        life = self.lives[-1]
        life.calls.add(planned.name)
        request_id, answer = life.client.start(planned.tool, planned.arguments, progress=len(life.calls))
        if planned.cancel_after is not None:
            await asyncio.wait([answer], timeout=planned.cancel_after)
            if not answer.done():
                life.client.cancel(request_id)
                return
        await asyncio.wait([answer], timeout=PATIENCE)
        assert answer.done(), f"{planned.name} was not answered"
        if answer.cancelled():
            return
        result = life.answers[planned.name] = answer.result()["result"]
        if result.get("isError") and error_of(result)["code"] in NOT_SENT:
            # Such calls fail within a millisecond. A moment without a listener would use up the whole plan.
            await asyncio.sleep(PAUSE)


async def run(plan: Plan, folder: Path, *, expire: bool = False) -> "Outcome":
    """Carry out a plan in an empty folder; with `expire`, wait until no reservation is left."""
    journal = folder / "bills.jsonl"
    calls = plan_calls(plan)
    settings = {**SETTINGS, "MERCURY_BUDGET_USD": f"{plan.budget_usd:.9f}"}
    if plan.database_url:
        settings["BRIDGEHEAD_DATABASE_URL"] = plan.database_url
    names = [f"bridge-{number}" for number in range(plan.bridges)]
    states = [folder / (f"state-{name}" if plan.database_url else "state") for name in names]
    async with _upstream(plan, journal) as url:
        bridges = [
            Bridge(name, state, folder, url, settings) for name, state in zip(names, states, strict=True)
        ]
        try:
            await asyncio.gather(*(bridge.start() for bridge in bridges))
            await _make_calls(plan, calls, bridges)
            await asyncio.gather(*(bridge.end() for bridge in bridges))
        finally:
            for bridge in bridges:
                if bridge.lives and bridge.lives[-1].client.process.returncode is None:
                    await bridge.lives[-1].client.kill()
        usage = await _read_usage(url, states[0], settings)
        async with asyncio.timeout(EXPIRY_SECONDS):
            while expire and sum(row["reserved_usd"] for row in usage):
                await asyncio.sleep(1)
                usage = await _read_usage(url, states[0], settings)
    lives = [life for bridge in bridges for life in bridge.lives]
    return Outcome(plan, calls, billing_upstream.read_journal(journal), lives, usage)


@asynccontextmanager
async def _upstream(plan: Plan, journal: Path) -> AsyncIterator[str]:
    """Run the upstream as a process of its own."""
    module = [sys.executable, "-m", "tests.support.billing_upstream"]
    options = ["--port", str(free_port()), "--seed", str(plan.seed), "--journal", str(journal)]
    process = await asyncio.create_subprocess_exec(
        *(*dying_with_us("KILL"), *module, *options),
        *(word for name in plan.without for word in ("--without", name)),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("COV")},
    )
    assert process.stdout is not None
    try:
        url = (await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode().strip()
        assert url, "the upstream did not start"
        yield url
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _make_calls(plan: Plan, calls: list[PlannedCall], bridges: list[Bridge]) -> None:
    """Make all calls, several at once over each bridge, and kill a bridge now and then meanwhile."""
    left, done = iter(calls), 0
    draw = random.Random(plan.seed)  # noqa: S311 - to be repeated, not to be secret

    async def work(bridge: Bridge) -> None:
        nonlocal done
        for planned in left:
            await bridge.call(planned)
            done += 1

    async def kill_some() -> None:
        # The last quarter is left alone, so that some calls are those of processes that end by themselves.
        for moment in sorted(draw.choices(range(len(calls) * 3 // 4), k=plan.kills)):
            while done < moment:
                await asyncio.sleep(0.001)
            await asyncio.sleep(draw.uniform(0, 0.05))
            bridge = draw.choice(bridges)
            await bridge.kill()
            await bridge.start()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(kill_some())
        for bridge in bridges:
            for _ in range(WINDOW):
                tasks.create_task(work(bridge))


async def _read_usage(url: str, state: Path, settings: dict[str, str]) -> list[Json]:
    """Ask for the usage as a person does."""
    options = ("--days", "2", "--by", "day,model,client", "--format", "json")
    code, out, err = await command(url, state, "usage", *options, **settings)
    assert code == 0, err
    rows: list[Json] = msgspec.json.decode(out)
    return rows


# --- the comparison ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """Both sides of a run: what the upstream charged, and what the bridges say."""

    plan: Plan
    calls: list[PlannedCall]
    bills: list[Bill]
    lives: list[Life]
    usage: list[Json]

    @property
    def charged(self) -> float:
        return math.fsum(bill.charge_usd for bill in self.bills)

    @property
    def settled(self) -> float:
        return self._sum("cost_usd")

    @property
    def uncertain(self) -> float:
        return self._sum("uncertain_usd")

    @property
    def reserved(self) -> float:
        return self._sum("reserved_usd")

    def _sum(self, column: str) -> float:
        return math.fsum(row[column] for row in self.usage)

    @property
    def kills(self) -> int:
        return sum(life.is_killed for life in self.lives)

    @cached_property
    def codes(self) -> Counter[str]:
        """How the calls ended for the client: `ok`, the code of an error, or nothing came."""
        answers = [answer for life in self.lives for answer in life.answers.values()]
        codes = Counter(error_of(one)["code"] if one.get("isError") else "ok" for one in answers)
        codes["(no answer)"] = len(self.calls) - len(answers)
        return codes

    @property
    def budget(self) -> float:
        """The budgets of all days that the run touched: two if it ran over midnight (UTC)."""
        return self.plan.budget_usd * max(1, len({row["day"] for row in self.usage}))

    def find_violations(self) -> list[str]:
        """Return what contradicts the rules, in words."""
        charged, settled, uncertain, reserved = self.charged, self.settled, self.uncertain, self.reserved
        committed = settled + uncertain + reserved
        at_most = [
            ("settled", settled, "charged", charged),
            ("answered", self._answered(), "settled", settled),
            ("charged", charged, "settled + uncertain + reserved", committed),
            ("what has to be committed", self._least_committed(), "what is committed", committed),
            ("charged", charged, "the budget", self.budget),
            ("what is committed", committed, "the budget", self.budget),
            ("reserved", reserved, "what killed processes can have reserved", self._most_reserved()),
            ("uncertain + reserved", uncertain + reserved, "what can be uncertain", self._most_uncertain()),
        ]
        found = [
            f"{name} (${value:.9f}) is more than {limit_name} (${limit:.9f})"
            for name, value, limit_name, limit in at_most
            if value > limit + TOLERANCE
        ]
        return [*found, *self._compare_sends(), *self._compare_costs()]

    @cached_property
    def _bills_by_call(self) -> dict[str, list[Bill]]:
        found = defaultdict(list)
        for bill in self.bills:
            found[bill.call].append(bill)
        return found

    def _answered(self) -> float:
        """Add up the costs in answers of processes that were not killed."""
        answers = [answer for life in self.lives if not life.is_killed for answer in life.answers.values()]
        return math.fsum(_read_cost(answer) or 0.0 for answer in answers)

    def _least_committed(self) -> float:
        """Add up what is committed at least for the sends that arrived.

        That is nothing after a refusal, the charge if the bridge may know it, and otherwise the worst case:
        what was charged is less, so the sum of charges alone would not show that uncertain money is missing.
        """
        total = 0.0
        for bill in self.bills:
            fault = BY_NAME[bill.fault]
            if not fault.is_refusal:
                total += bill.charge_usd if fault.tells_usage else bill.most_usd
        return total

    def _most_reserved(self) -> float:
        """A killed process leaves at most one reservation for each of its calls; others leave none."""
        killed = {name for life in self.lives if life.is_killed for name in life.calls}
        return math.fsum(call.most_usd for call in self.calls if call.name in killed)

    def _most_uncertain(self) -> float:
        """Add up what can be uncertain: every send but those whose response left no doubt.

        Without this limit a bridge that never settles anything would pass.
        """
        most = {call.name: call.most_usd for call in self.calls}
        total = 0.0
        for life in self.lives:
            for name in life.calls:
                bills = self._bills_by_call.get(name, [])
                # Of a call that has no line one send may not have arrived; after that nothing is sent again.
                outcome, tries = life.audit.get(name, ("CANCELLED", len(bills) + 1))
                certain = 0
                # A killed process may have read a response and not written down what it says.
                if outcome not in LOST and not life.is_killed:
                    certain = sum(BY_NAME[bill.fault].is_certain for bill in bills)
                total += (max(tries, len(bills)) - certain) * most[name]
        return total

    def _compare_sends(self) -> Iterator[str]:
        """Find calls of which more was sent than the audit log says.

        Less may have arrived than was sent, on connections that the upstream had closed, or if the client
        gave up. Otherwise both numbers are the same.
        """
        is_gapless = not any(BY_NAME[bill.fault].leaves_gap for bill in self.bills)
        for life in self.lives:
            for name, (outcome, tries) in life.audit.items():
                arrived = len(self._bills_by_call.get(name, []))
                is_exact = is_gapless and outcome not in ("TIMEOUT", "CANCELLED")
                if arrived > tries or (is_exact and arrived < tries):
                    yield f"{name} ({outcome}) arrived {arrived} times, with {tries} tries in the audit log"

    def _compare_costs(self) -> Iterator[str]:
        """Find answers whose cost is not what the upstream charged for the send that was answered."""
        for life in self.lives:
            for name, answer in life.answers.items():
                cost = _read_cost(answer)
                if cost is None:
                    continue
                charge = self._bills_by_call[name][-1].charge_usd
                if abs(cost - charge) > TOLERANCE:
                    yield f"{name} cost ${cost:.9f} by its answer, and ${charge:.9f} by the journal"


def _read_cost(answer: Json) -> float | None:
    """Read what an answer cost; None if it does not say, or is an error."""
    if answer.get("isError"):
        return None
    cost: float | None = answer["structuredContent"]["metadata"].get("cost_usd")
    return cost
