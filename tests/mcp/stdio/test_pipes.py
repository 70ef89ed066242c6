"""Pipes: both ways to read and to write a descriptor keep the same promises."""

import asyncio
import os
from collections.abc import Callable, Iterator

import pytest

from bridgehead.mcp.stdio.pipes import (
    CHUNK,
    Input,
    Output,
    ThreadedInput,
    ThreadedOutput,
    WatchedInput,
    WatchedOutput,
    open_input,
    open_output,
)
from tests.support import waiting

PATIENCE = waiting.PATIENCE


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe whose ends the test may close itself."""
    ends = os.pipe()
    yield ends
    for end in reversed(ends):  # a thread that waits at the other end hears of it first
        try:
            os.close(end)
        except OSError:
            continue


class Received:
    """What an input hands over, and a way to wait for it."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self._more = asyncio.Event()

    def __call__(self, chunk: bytes) -> None:
        self.chunks.append(chunk)
        self._more.set()

    async def until(self, enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not enough():
                self._more.clear()
                await self._more.wait()


async def a_few_turns() -> None:
    """Let threads and the loop do what they would do; nothing is expected to happen."""
    for _ in range(20):
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("kind", [WatchedInput, ThreadedInput])
async def test_an_input_gives_what_is_written_and_then_its_end(
    kind: Callable[[int], Input], pipe: tuple[int, int]
) -> None:
    reading, writing = pipe
    received = Received()
    source = kind(reading)
    source.start(received)
    os.write(writing, b"one")
    await received.until(lambda: received.chunks == [b"one"])
    os.write(writing, b"two")
    os.close(writing)
    await received.until(lambda: received.chunks[-1:] == [b""])
    assert b"".join(received.chunks) == b"onetwo"
    source.close()


@pytest.mark.parametrize("kind", [WatchedInput, ThreadedInput])
async def test_a_paused_input_reads_at_most_one_chunk_ahead(
    kind: Callable[[int], Input], pipe: tuple[int, int]
) -> None:
    reading, writing = pipe
    received = Received()
    source = kind(reading)
    source.start(received)
    for _ in range(50):  # while it waits for input: pausing and going on must not add up
        source.pause()
        source.resume()
    source.pause()
    for _ in range(4):  # which fits into the pipes of every system
        os.write(writing, b"x" * 1000)
        await asyncio.sleep(0.002)
    await a_few_turns()
    assert len(received.chunks) <= 1
    source.resume()
    await received.until(lambda: len(b"".join(received.chunks)) == 4000)
    source.close()


@pytest.mark.parametrize("kind", [WatchedInput, ThreadedInput])
async def test_a_closed_input_hands_over_nothing_more(
    kind: Callable[[int], Input], pipe: tuple[int, int]
) -> None:
    reading, writing = pipe
    received = Received()
    source = kind(reading)
    source.start(received)
    source.close()
    os.write(writing, b"too late")
    await a_few_turns()
    assert received.chunks == []
    source.resume()
    await a_few_turns()
    assert received.chunks == []


@pytest.mark.parametrize("kind", [WatchedInput, ThreadedInput])
async def test_an_input_that_cannot_be_read_is_at_its_end(
    kind: Callable[[int], Input], pipe: tuple[int, int]
) -> None:
    _, writing = pipe
    received = Received()
    source = kind(writing)  # the writing end: reading it fails, as soon as it seems possible
    source.start(received)
    os.close(pipe[0])
    await received.until(lambda: received.chunks == [b""])
    source.close()


async def test_a_watched_input_passes_over_a_false_alarm(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.set_blocking(reading, False)
    received = Received()
    source = WatchedInput(reading)
    source.start(received)
    asyncio.get_running_loop().call_soon(source._readable)  # noqa: SLF001  (as if another reader was faster)
    await a_few_turns()
    os.write(writing, b"now")
    await received.until(lambda: received.chunks == [b"now"])
    source.close()


def open_threaded(descriptor: int) -> Output:
    return ThreadedOutput(descriptor, on_break=lambda: None)


each_output = pytest.mark.parametrize("kind", [WatchedOutput, open_threaded])


@each_output
async def test_an_output_counts_what_its_reader_has_not_taken(
    kind: Callable[[int], Output], pipe: tuple[int, int]
) -> None:
    reading, writing = pipe
    output = kind(writing)
    output.write(b"y" * 1_000_000)
    output.write(b"z" * 1_000_000)
    assert output.size == 2_000_000
    output.flush()
    await a_few_turns()
    assert output.size > 1_500_000
    drained = asyncio.create_task(output.drain(0))
    patient = asyncio.create_task(output.drain(1_000_000))
    taken = await asyncio.to_thread(_read, reading, 2_000_000)
    async with asyncio.timeout(PATIENCE):
        await drained
        await patient
    assert taken == b"y" * 1_000_000 + b"z" * 1_000_000
    assert output.size == 0
    await output.close(1.0)
    if hasattr(os, "get_blocking"):  # Windows has it since Python 3.12
        assert os.get_blocking(writing)


def _read(descriptor: int, size: int) -> bytes:
    parts = []
    while size > 0:
        parts.append(os.read(descriptor, CHUNK))
        size -= len(parts[-1])
    return b"".join(parts)


@each_output
async def test_an_output_without_a_reader_is_broken_and_lets_everyone_go(
    kind: Callable[[int], Output], pipe: tuple[int, int]
) -> None:
    reading, writing = pipe
    output = kind(writing)
    output.write(b"y" * 1_000_000)
    output.flush()
    waiting = asyncio.create_task(output.drain(0))
    await asyncio.sleep(0)
    os.close(reading)
    async with asyncio.timeout(PATIENCE):
        await waiting
    assert output.is_broken
    output.write(b"into the void")
    assert output.size == 0
    await output.close(1.0)


@each_output
async def test_closing_an_output_whose_reader_sleeps_takes_a_bounded_time(
    kind: Callable[[int], Output], pipe: tuple[int, int]
) -> None:
    reading, writing = pipe
    output = kind(writing)
    output.write(b"y" * 1_000_000)
    async with asyncio.timeout(PATIENCE):
        await output.close(0.1)
    assert output.size > 0
    os.close(reading)  # on Windows an end that a thread writes to cannot be closed


async def test_the_way_fits_the_descriptor(pipe: tuple[int, int], tmp_path: os.PathLike[str]) -> None:
    reading, writing = pipe
    file = os.open(os.path.join(tmp_path, "file"), os.O_CREAT | os.O_RDWR, 0o600)  # noqa: PTH118
    try:
        assert isinstance(open_input(reading), WatchedInput)
        assert isinstance(open_output(writing, lambda: None), WatchedOutput)
        assert isinstance(open_input(file), ThreadedInput)
        assert isinstance(open_output(file, lambda: None), ThreadedOutput)
    finally:
        os.close(file)
