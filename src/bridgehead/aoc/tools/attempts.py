"""Attempts: the tools that time a model from puzzle to right answer, by the server's clock.

`start_attempt` hands out text and input as the clock starts, so that the time of a model that had not seen
the puzzle can be trusted.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from bridgehead.mcp import Answer, Arguments, Bridge, Context
from bridgehead.runtime.callers import is_operator, word_error
from bridgehead.runtime.errors import InvalidArgument, NotFound

from ..files import instructions
from ..files.attempts import MAX_TRIES, AttemptStep, TimedAttempt
from ..files.entries import CLAIMED, MEASURED, Grade
from ..files.layout import Day, Phase
from ..files.names import clean_name
from ..workspace import Workspace
from .records import choose_name

PAGE = 12_000
"""Characters of a puzzle with its input, or of a further page of the input.

Qwen Code moves a result of about 30,000 characters into a file, text and structure together, and Codex cuts
the middle out of 40,000. An answer computed without the middle of the input is wrong.
"""
_MIN_INPUT = 3_000
"""Characters of the input that come with the longest puzzle."""
GRACE_SECONDS = 2.0
"""How long a call may take before a client that supports tasks gets a task instead."""
_WRONG = {
    "wrong": "Wrong.",
    "too_high": "Wrong: too high.",
    "too_low": "Wrong: too low.",
}


class StartAttempt(Arguments):
    """Arguments of `start_attempt`."""

    day: Day
    phase: Phase
    llm_name: str | UnsetType = UNSET
    llm: str | UnsetType = UNSET


START_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "day": {"type": "integer", "description": "1 to 25"},
        "phase": {"type": "integer", "description": "1 or 2"},
        "llm_name": {"type": "string", "description": "Your model's name, 1 to 200 characters"},
    },
    "required": ["day", "phase", "llm_name"],
    "additionalProperties": False,
}


class StartedAttempt(Struct, frozen=True):
    """An attempt under way, with the puzzle; `input` is a page of it."""

    attempt: str
    day: int
    phase: int
    llm: str
    started: str
    grade: Annotated[Grade, Meta(description="What its time can count as")]
    tries: int
    instruction: str
    input: str | None
    input_characters: int
    next_offset: int | None


class ReadInput(Arguments):
    """Arguments of `read_input`."""

    attempt: Annotated[str, Meta(min_length=1, max_length=64, description="From start_attempt")]
    offset: Annotated[int, Meta(ge=0, description="`next_offset` of the page before")] = 0


class InputPage(Struct, frozen=True):
    """A page of a puzzle input."""

    input: str
    input_characters: int
    next_offset: int | None


class FinishAttempt(Arguments):
    """Arguments of `finish_attempt`."""

    attempt: Annotated[str, Meta(min_length=1, max_length=64, description="From start_attempt")]
    answer: (
        Annotated[
            str,
            Meta(
                min_length=1, max_length=4000, description="What the program printed, up to 4000 characters"
            ),
        ]
        | UnsetType
    ) = UNSET
    give_up: Annotated[bool, Meta(description="End without an answer; counts as not solved")] = False
    tokens: Annotated[int, Meta(ge=0, description="Tokens used, if known")] | UnsetType = UNSET
    cost_usd: Annotated[float, Meta(ge=0, description="Cost in US dollars, if known")] | UnsetType = UNSET


class FinishedAttempt(Struct, frozen=True):
    """After `wrong` the clock runs on; the other outcomes end the attempt."""

    attempt: str
    outcome: Literal["solved", "wrong", "unchecked", "failed"]
    verdict: Literal["right", "wrong", "too_high", "too_low", "unknown", "none"]
    speed_ms: int
    recorded: bool
    grade: Grade | None
    tries_left: int


def declare(bridge: Bridge[Workspace]) -> None:
    """Declare the tools."""
    bridge.tool(
        "Start the server's clock for one phase of a day and get its text and input. Do not read the puzzle "
        "before: the time would only be claimed. Phase 2 opens when phase 1 is solved.",
        title="Start attempt",
        read_only=False,
        destructive=False,
        idempotent=False,
        open_world=False,
        input_schema=START_SCHEMA,
        task="optional",
        task_grace_seconds=GRACE_SECONDS,
    )(start_attempt)
    bridge.tool(
        "Read the next page of a long puzzle input, of an attempt that was started.",
        title="Read puzzle input",
        read_only=True,
        open_world=False,
    )(read_input)
    bridge.tool(
        "Hand in the answer of an attempt, at most 5 times. A right one stops the clock and records the "
        "solving time; after a wrong one the clock runs on. Without a known answer the time is only claimed.",
        title="Finish attempt",
        read_only=False,
        destructive=False,
        idempotent=False,
        open_world=False,
        task="optional",
        task_grace_seconds=GRACE_SECONDS,
    )(finish_attempt)


# --- starting ----------------------------------------------------------------------------------------------


class _Page(NamedTuple):
    text: str
    next_offset: int | None


def cut_page(text: str, offset: int, size: int = PAGE) -> _Page:
    """Return a page of an input, which ends with a line if it can."""
    end = offset + size
    if end >= len(text):
        return _Page(text[offset:], None)
    end = text.rfind("\n", offset, end) + 1 or end
    return _Page(text[offset:end], end)


async def start_attempt(args: StartAttempt, ctx: Context[Workspace]) -> Answer[StartedAttempt]:
    """Begin an attempt, and hand out the puzzle."""
    name = choose_name(args.llm_name, args.llm)
    if isinstance(name, UnsetType):
        raise InvalidArgument("llm_name is missing.", next_step="Give the name that you are known by.")
    llm = clean_name(name)
    return await ctx.state.run_in_thread(
        _begin, ctx.state, args.day, args.phase, llm, ctx.state.caller_of(ctx), ctx.principal
    )


def _begin(
    workspace: Workspace, day: int, phase: int, llm: str, caller: str, owner: str | None
) -> Answer[StartedAttempt]:
    if day not in workspace.days():
        days = ", ".join(map(str, sorted(workspace.days()))) or "none"
        raise NotFound(f"Day {day} has no puzzle here.", next_step=f"Days with a puzzle: {days}.")
    text = instructions.text_of_phase(workspace.instruction(day), phase, workspace.year)
    past = workspace.past_attempts(day, llm, caller)
    if phase == 2 and not past.has_solved_first:  # noqa: PLR2004 - the second phase
        raise NotFound(
            f"Phase 2 of day {day} is not open to {llm}: phase 1 is not solved yet.",
            next_step=f"Solve phase 1 first, with start_attempt(day={day}, phase=1).",
        )
    doubts: list[str] = []
    if phase in past.handed_out or workspace.handouts.has(caller, day, phase):
        doubts.append("This phase was given out to you before, so the time will only count as claimed.")
    if not instructions.has_answer(workspace.folders.answers, day, phase):
        doubts.append("No answer to this phase is known here, so the time will only count as claimed.")
    notes = list(doubts)
    try:
        puzzle_input = instructions.read_input(workspace.folders.inputs, day)
    except NotFound as missing:
        puzzle_input = None
        notes.append(word_error(missing))
    workspace.handouts.record(caller, day, *range(1, phase + 1))  # phase 2 comes with the text of phase 1
    # Last: the clock starts when everything has been read.
    step = workspace.stopwatch.start(day, phase, llm, CLAIMED if doubts else MEASURED, caller, owner)
    return _handed_out(step, day, text, puzzle_input, notes)


def _handed_out(
    step: AttemptStep, day: int, text: str, puzzle_input: str | None, notes: list[str]
) -> Answer[StartedAttempt]:
    shown_text = (
        f"The clock runs for {step.llm} on day {day} phase {step.phase}, attempt {step.attempt}.\n\n{text}"
    )
    page = _Page("", None)
    next_steps: list[str] = []
    if puzzle_input is not None:
        page = cut_page(puzzle_input, 0, max(PAGE - len(text), _MIN_INPUT))
        part = "" if page.next_offset is None else f", the first {len(page.text):,} of them"
        shown_text += f"\n\n## Input ({len(puzzle_input):,} characters{part})\n{page.text}"
    if page.next_offset is not None:
        next_steps.append(
            f"The input goes on: read_input(attempt={step.attempt!r}, offset={page.next_offset})."
        )
    next_steps.append(
        f"Hand in the answer with finish_attempt(attempt={step.attempt!r}, answer=...). "
        f"You have {MAX_TRIES} tries."
    )
    started = StartedAttempt(
        attempt=step.attempt,
        day=day,
        phase=step.phase,
        llm=step.llm,
        started=step.timestamp,
        grade=step.grade,
        tries=MAX_TRIES,
        instruction=text,
        input=None if puzzle_input is None else page.text,
        input_characters=len(puzzle_input or ""),
        next_offset=page.next_offset,
    )
    return Answer(shown_text, started, notes=tuple(notes), next=tuple(next_steps))


async def read_input(args: ReadInput, ctx: Context[Workspace]) -> Answer[InputPage]:
    """Return a page of the input of an attempt."""
    workspace = ctx.state

    def read() -> str:
        day = workspace.stopwatch.look_up(args.attempt).day
        text = instructions.read_input(workspace.folders.inputs, day)
        # Record it for this caller: the attempt may belong to another one.
        caller = workspace.caller_of(ctx)
        workspace.store_handout(caller, day, workspace.handouts.record(caller, day, 1))
        return text

    text = await workspace.run_in_thread(read)
    if args.offset > len(text):
        raise InvalidArgument(
            f"The input has {len(text):,} characters.", next_step="Give the next_offset of the page before."
        )
    page = cut_page(text, args.offset)
    steps = () if page.next_offset is None else (f"It goes on at offset {page.next_offset}.",)
    return Answer(page.text, InputPage(page.text, len(text), page.next_offset), next=steps)


# --- finishing ---------------------------------------------------------------------------------------------


async def finish_attempt(args: FinishAttempt, ctx: Context[Workspace]) -> Answer[FinishedAttempt]:
    """Check an answer; end the attempt unless the answer was wrong."""
    if (args.answer is UNSET) != args.give_up:
        raise InvalidArgument(
            "Give either an answer or give_up.", next_step="give_up ends the attempt unsolved."
        )
    workspace = ctx.state
    attempt = await workspace.run_in_thread(workspace.stopwatch.look_up, args.attempt)
    if not is_operator.get() and attempt.started.owner not in {None, ctx.principal}:
        # Else anyone could give up, or guess, in another caller's name.
        raise NotFound(
            f"There is no attempt {args.attempt!r} of yours.", next_step="start_attempt begins one."
        )
    had_ended = attempt.end is not None
    if not had_ended:
        attempt = await workspace.run_in_thread(_hand_in, workspace, attempt, args, workspace.caller_of(ctx))
    # Even if an earlier call ended the attempt: a crash may have come between its end and its record.
    is_recorded = await workspace.record_attempt(attempt, id(ctx.connection), ctx.principal)
    return _finished(attempt, is_recorded=is_recorded, had_ended=had_ended)


def _hand_in(workspace: Workspace, attempt: TimedAttempt, args: FinishAttempt, caller: str) -> TimedAttempt:
    started = attempt.started
    verdict, is_doubtful = None, attempt.is_backwards
    if not isinstance(args.answer, UnsetType):
        verdict = workspace.check_answer(attempt.day, started.phase, args.answer)
    if verdict == "right" and started.grade != CLAIMED:
        # Tries are counted over all attempts: parallel attempts could be used to guess the answer.
        past = workspace.past_attempts(
            attempt.day, started.llm, started.caller, caller, before=started.attempt
        )
        is_doubtful |= past.answers[started.phase] >= MAX_TRIES
        # Checked at the start too, but attempts that begin at the same moment in several processes do not
        # see each other there. Here the order in the store decides.
        is_doubtful |= started.phase in past.handed_out
    return workspace.stopwatch.hand_in(
        attempt,
        verdict,
        None if isinstance(args.tokens, UnsetType) else args.tokens,
        None if isinstance(args.cost_usd, UnsetType) else args.cost_usd,
        is_doubtful=is_doubtful,
    )


def _finished(attempt: TimedAttempt, *, is_recorded: bool, had_ended: bool) -> Answer[FinishedAttempt]:
    # The first end stands; an attempt without one has this call's wrong answer as its last step.

    step = attempt.end or attempt.steps[-1]
    tries_left = 0 if attempt.end is not None else MAX_TRIES - attempt.wrong
    milliseconds = step.time or attempt.milliseconds
    label = f"{step.llm} Day {attempt.day} Phase {step.phase}"
    wrong = _WRONG.get(step.verdict or "")
    notes: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    if step.outcome == "wrong":
        text = f"{wrong} The clock runs on."
        tries = "try is" if tries_left == 1 else "tries are"
        steps = (f"Correct it and hand in again; {tries_left} {tries} left.",)
    elif step.outcome == "solved":
        text = f"Right. Recorded {label}: {milliseconds}ms, {step.grade}."
        if step.grade != attempt.started.grade:
            why = (
                f"it took over {MAX_TRIES} tries in several attempts, the phase was given out before this one"
            )
            notes = (f"The time is only claimed: {why} began, or the clock was set back.",)
    elif step.outcome == "unchecked":
        text = f"Recorded {label}: {milliseconds}ms, claimed."
        notes = ("The answer was not checked: none is known here.",)
    else:
        out_of_tries = f"{wrong} That was the last of {MAX_TRIES} tries. " if wrong else ""
        text = f"{out_of_tries}Not solved: {label}, after {milliseconds}ms."
    if had_ended:
        notes += ("The attempt had ended before; this is its result.",)
        steps = ("start_attempt begins another.",)
    outcome: Any = step.outcome
    verdict: Any = step.verdict or {"solved": "right", "unchecked": "unknown"}.get(step.outcome, "none")
    grade = step.grade if is_recorded else None
    structured = FinishedAttempt(step.attempt, outcome, verdict, milliseconds, is_recorded, grade, tries_left)
    return Answer(text, structured, notes=notes, next=steps)
