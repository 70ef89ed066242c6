"""The link: each call gets its own reply, its own failure or its own end; deadlines are kept to."""

import asyncio
import gc
import itertools
import json
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from bridgehead.bitburner.errors import Disconnected, InvalidReply, ReplyTimeout, ReplyTooLarge
from bridgehead.bitburner.game import link as link_module
from bridgehead.bitburner.game.link import CallFailed, Deadlines, Link, Outbox
from bridgehead.bitburner.simulator import Faults
from bridgehead.runtime.metrics import Counter
from tests.bitburner.playing import FILES, Play, played
from tests.support.game import Game
from tests.support.waiting import PATIENCE, until

MAX_BYTES = 100


class Line:
    """A link, and the game at the other end of its socket."""

    def __init__(self, link: Link, game: ClientConnection, ignored: Counter, timeouts: Counter) -> None:
        self.link = link
        self.game = game
        self._ignored = ignored
        self._timeouts = timeouts

    def call(self, method: str = "getFile", timeout: float = PATIENCE) -> asyncio.Task[Raw]:
        return asyncio.ensure_future(self.link.call(method, b"{}", timeout))

    async def asked(self) -> Any:
        """What the game was asked next."""
        return json.loads(await asyncio.wait_for(self.game.recv(), PATIENCE))

    async def reply(self, text: str) -> None:
        await self.game.send(text)

    @property
    def ignored(self) -> dict[str, float]:
        return {why: count for (why,), count in self._ignored.values.items()}

    @property
    def timeouts(self) -> float:
        return sum(self._timeouts.values.values())


@asynccontextmanager
async def connected(on_notice: Callable[[Any], None] | None = None) -> AsyncIterator[Line]:
    ignored, timeouts = Counter("ignored", "", ("why",)), Counter("timeouts", "")
    links: asyncio.Queue[Link] = asyncio.Queue()

    async def accept(socket: ServerConnection) -> None:
        link = Link(
            socket,
            itertools.count(7),
            ignored=ignored,
            timeouts=timeouts,
            max_bytes=MAX_BYTES,
            on_notice=on_notice,
        )
        links.put_nowait(link)
        await link.run()

    async with serve(accept, "127.0.0.1", 0, max_size=10 * MAX_BYTES) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}") as game:
            yield Line(await links.get(), game, ignored, timeouts)


async def test_a_reply_finds_its_call_by_its_id() -> None:
    async with connected() as line:
        first, second = line.call("getFile"), line.call("getFileNames")
        requests = [await line.asked(), await line.asked()]
        assert [request["id"] for request in requests] == [7, 8]
        assert [request["method"] for request in requests] == ["getFile", "getFileNames"]
        assert line.link.pending == 2

        await line.reply('{"id": 8, "result": ["a"]}')
        await line.reply('{"id": 7, "result": "b", "error": null}')
        assert [bytes(await second), bytes(await first)] == [b'["a"]', b'"b"']
        assert line.link.pending == 0
        assert line.ignored == {}


async def test_a_refused_call_leaves_nothing_for_the_garbage_collector() -> None:
    async with connected() as line:
        answering = asyncio.ensure_future(line.asked())
        failures: list[weakref.ref[CallFailed]] = []
        gc.disable()
        try:
            refused = asyncio.ensure_future(line.reply('{"id": 7, "error": "No."}'))
            try:
                await line.link.call("getFile", b"{}", PATIENCE)
            except CallFailed as error:
                failures.append(weakref.ref(error))
            await asyncio.gather(answering, refused)
            await asyncio.sleep(0)  # the loop itself holds the future until this step ends
            left = [failure() for failure in failures]
        finally:
            gc.enable()

    assert left == [None]


async def test_an_error_of_the_game_is_told_as_it_is() -> None:
    async with connected() as line:
        call = line.call()
        await line.asked()
        await line.reply('{"id": 7, "error": "File does not exist."}')

        with pytest.raises(CallFailed, match="File does not exist") as failed:
            await call
        assert failed.value.failure.message == "File does not exist."


async def test_a_reply_without_result_or_error_is_counted_and_fails_its_call() -> None:
    async with connected() as line:
        call = line.call()
        await line.asked()
        await line.reply('{"id": 7}')

        with pytest.raises(InvalidReply, match="neither a result nor an error"):
            await call
        assert line.ignored == {"malformed": 1}


async def test_what_is_no_reply_to_any_call_is_counted_and_harms_none() -> None:
    async with connected() as line:
        call = line.call()
        await line.asked()
        for text in (
            "nonsense",
            '{"id": 99, "result": 1}',
            '{"id": "7", "result": 1}',
            '{"method": "hello"}',
        ):
            await line.reply(text)
        await line.reply('{"id": 7, "result": "mine"}')

        assert bytes(await call) == b'"mine"'
        assert line.ignored == {"malformed": 1, "unsolicited": 3}


async def test_a_notice_goes_to_whoever_wants_notices() -> None:
    heard: list[Any] = []
    async with connected(heard.append) as line:
        call = line.call()
        await line.asked()
        await line.reply('{"method": "changed", "params": {"n": 1}}')
        await line.reply('{"id": 7, "result": 1}')
        await call

        assert [notice.method for notice in heard] == ["changed"]
        assert line.link.is_shared
        assert line.ignored == {}
    async with connected() as line:
        assert not line.link.is_shared


async def test_a_reply_may_be_as_large_as_the_limit_and_no_larger() -> None:
    async with connected() as line:
        calls = [line.call("first"), line.call("second")]
        for _ in calls:
            await line.asked()
        for number, size in ((7, MAX_BYTES), (8, MAX_BYTES + 1)):
            frame = f'{{"id": {number}, "result": "'
            await line.reply(frame + "x" * (size - len(frame) - 2) + '"}')

        assert len(bytes(await calls[0])) > 70
        with pytest.raises(ReplyTooLarge, match=r"to second has 101 bytes; at most 100 are accepted"):
            await calls[1]
        await line.reply('{"id": 99, "result": "' + "x" * MAX_BYTES + '"}')
        await line.reply('{"id": 8, "result": "' + "x" * MAX_BYTES + '"}')
        await until(lambda: line.ignored == {"too large": 2})


async def test_a_frame_far_too_large_ends_the_connection_and_the_calls_hear_why() -> None:
    async with connected() as line:
        call = line.call()
        await line.asked()
        await line.reply("x" * 20 * MAX_BYTES)

        with pytest.raises(Disconnected, match="far larger than 100 bytes; ask for less"):
            await call


async def test_silence_ends_in_a_timeout_that_is_counted_and_forgotten() -> None:
    async with connected() as line:
        with pytest.raises(ReplyTimeout, match="getFile within"):
            await line.call(timeout=0.01)

        assert (line.timeouts, line.link.pending) == (1, 0)


async def test_when_the_game_goes_every_call_fails_and_so_does_the_next() -> None:
    async with connected() as line:
        calls = [line.call("one"), line.call("two")]
        for _ in calls:
            await line.asked()
        await line.game.close()

        for call, method in zip(calls, ("one", "two"), strict=True):
            with pytest.raises(Disconnected, match=rf"while {method} waited for its answer\."):
                await call
        with pytest.raises(Disconnected, match="three"):
            await line.call("three", timeout=10 * PATIENCE)
        assert not await line.link.is_alive(PATIENCE)


async def test_hanging_up_fails_what_waits_and_tells_the_game_why() -> None:
    async with connected() as line:
        call = line.call()
        await line.asked()
        assert await line.link.is_alive(PATIENCE)
        closing = asyncio.ensure_future(line.link.close(4001, "enough"))

        with pytest.raises(Disconnected):
            await call
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(line.game.recv(), PATIENCE)
        await closing
        assert (line.game.close_code, line.game.close_reason) == (4001, "enough")


# --- deadlines ---------------------------------------------------------------------------------------------


async def test_each_future_fails_at_its_own_time_whatever_the_order() -> None:
    loop = asyncio.get_running_loop()
    deadlines, began = Deadlines(), loop.time()
    futures = {delay: loop.create_future() for delay in (0.06, 0.02, 0.04)}
    for delay, future in futures.items():
        deadlines.watch(future, began + delay)

    failed = {}
    for delay in sorted(futures):
        done, _ = await asyncio.wait({futures[delay]}, timeout=PATIENCE)
        assert done
        assert isinstance(futures[delay].exception(), TimeoutError)
        failed[delay] = loop.time() - began

    assert all(at >= delay - 0.002 for delay, at in failed.items())


async def test_a_future_that_ended_is_left_alone() -> None:
    loop = asyncio.get_running_loop()
    deadlines = Deadlines()
    answered, forgotten, late = (loop.create_future() for _ in range(3))
    for future in (answered, forgotten):
        deadlines.watch(future, loop.time() + 0.01)
    deadlines.watch(late, loop.time() + 0.02)
    answered.set_result("in time")
    deadlines.due.pop(forgotten)
    done, _ = await asyncio.wait({late}, timeout=PATIENCE)

    assert done
    assert isinstance(late.exception(), TimeoutError)
    assert answered.result() == "in time"
    assert not forgotten.done()


async def test_nothing_is_kept_of_a_call_that_has_ended() -> None:
    async with connected() as line:
        call = line.call()
        await line.asked()
        await line.reply('{"id": 7, "result": 1}')
        await call

        assert not line.link._deadlines.due  # noqa: SLF001 - a leak shows nowhere else


async def test_deadlines_that_were_passed_are_not_passed_again() -> None:
    loop = asyncio.get_running_loop()
    deadlines = Deadlines()
    for delay in (0.01, 0.02):
        future: asyncio.Future[None] = loop.create_future()
        deadlines.watch(future, loop.time() + delay)
        done, _ = await asyncio.wait({future}, timeout=PATIENCE)
        assert done
        assert isinstance(future.exception(), TimeoutError)


async def test_a_drop_rejects_what_is_in_flight_at_once(tmp_path: Path) -> None:
    game = Game(3, FILES, Faults(silence=1.0))
    async with played(tmp_path, game=game, RPC_TIMEOUT_MS="60000") as play:
        calls = [asyncio.ensure_future(play.fails("list_files")) for _ in range(5)]
        await until(lambda: len(game.requests) == 5)
        game.cut()
        async with asyncio.timeout(PATIENCE):
            answers = await asyncio.gather(*calls)

        for text, problem in answers:
            assert "Bitburner disconnected" in text
            assert (problem["code"], problem["transient"]) == ("disconnected", True)
        await until(lambda: play.session.connection.link is None)


async def test_silence_ends_in_a_timeout_that_tells_how_long_it_was(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(2, FILES, Faults(silence=1.0)), RPC_TIMEOUT_MS="120") as play:
        text, problem = await play.fails("read_file", filename="hack.js")

        assert (problem["code"], problem["transient"]) == ("timeout", True)
        assert "did not answer getFile within 0.1" in text
        assert play.count("rpc_timeouts_total") == 1
        link = play.session.connection.link
        assert link is not None
        assert link.pending == 0


async def test_a_reply_after_its_time_is_ignored_and_counted(tmp_path: Path) -> None:
    game = Game(3, FILES, Faults(late=1.0, delay=1.5, times=1))
    async with played(tmp_path, game=game, RPC_TIMEOUT_MS="1000") as play:
        await play.fails("read_file", filename="hack.js")
        await until(lambda: play.count("bridgehead_bitburner_replies_ignored_total", "unsolicited") == 1)

        assert (await play.ok("read_file", filename="notes.txt"))[0] == "one\ntwo\nthree"


async def test_replies_out_of_order_find_their_calls(tmp_path: Path) -> None:
    files = {"home": {f"f{number}.txt": f"content {number}" for number in range(50)}}
    async with played(tmp_path, game=Game(3, files, Faults(out_of_order=1.0))) as play:
        answers = await asyncio.gather(
            *(play.ok("read_file", filename=f"f{number}.txt") for number in range(50))
        )

    assert [text for text, _ in answers] == [f"content {number}" for number in range(50)]


async def test_garbage_between_replies_is_ignored_and_counted(tmp_path: Path) -> None:
    async with played(tmp_path, game=Game(3, FILES, Faults(garbage=1.0))) as play:
        for _ in range(40):
            assert (await play.ok("read_file", filename="notes.txt"))[0] == "one\ntwo\nthree"
        ignored = play.count("bridgehead_bitburner_replies_ignored_total", "malformed") + play.count(
            "bridgehead_bitburner_replies_ignored_total", "unsolicited"
        )

    assert ignored == 40


async def test_every_request_carries_params_and_its_own_id(play: Play) -> None:
    await play.ok("get_netscript_definitions")
    await play.ok("list_files")

    assert all(request["params"] is not None for request in play.game.requests)
    assert len({request["id"] for request in play.game.requests}) == len(play.game.requests)


async def test_a_thousand_requests_at_once_arrive_in_order(tmp_path: Path) -> None:
    files = {"home": {f"f{number}.txt": str(number) for number in range(1000)}}
    async with played(tmp_path, game=Game(3, files)) as play:
        answers = await asyncio.gather(
            *(play.session.remote.read(f"f{number}.txt", "home") for number in range(1000))
        )

        assert answers == [str(number) for number in range(1000)]
        assert [asked["filename"] for asked in play.asked("getFile")] == list(files["home"])


async def test_a_game_that_does_not_read_gets_no_more_than_it_can_take_and_the_rest_later(
    tmp_path: Path,
) -> None:
    async with played(tmp_path, game=Game(3, FILES), RPC_TIMEOUT_MS="60000") as play:
        play.game.freeze()
        writing = [
            asyncio.ensure_future(play.session.remote.push(f"big{number}.txt", "x" * 900_000, "home"))
            for number in range(20)
        ]
        await asyncio.sleep(0.05)
        assert not any(one.done() for one in writing)
        play.game.thaw()
        await asyncio.gather(*writing)

        assert sum(len(content) for content in play.game.servers["home"].values()) > 20 * 900_000


async def test_a_call_that_is_given_up_before_it_was_sent_is_never_sent(tmp_path: Path) -> None:
    async with played(
        tmp_path, game=Game(3, FILES), RPC_TIMEOUT_MS="3000", BITBURNER_BACKUP_DIR="off"
    ) as play:
        play.game.freeze()
        await asyncio.gather(
            *(
                play.fails("write_file", filename=f"big{number}.txt", content="x" * 900_000)
                for number in range(30)
            )
        )
        play.game.thaw()
        await play.ok("list_files")

        assert len(play.asked("pushFile")) < 30
        link = play.session.connection.link
        assert link is not None
        await until(lambda: link.pending == 0)


class Socket:
    """The part of a connection that an outbox uses: it counts the writes, and can be slow to take them."""

    def __init__(self) -> None:
        self.state = State.OPEN
        self.transport = self.protocol = self
        self.writes: list[bytes] = []
        self.unsent = 0
        self.looks = 0
        """How often its buffer was looked at."""
        self._frames: list[bytes] = []

    def get_write_buffer_size(self) -> int:
        self.looks += 1
        return self.unsent

    def send_text(self, frame: bytes) -> None:
        self._frames.append(frame)

    def data_to_send(self) -> list[bytes]:
        frames, self._frames = self._frames, []
        return frames

    def write(self, data: bytes) -> None:
        self.writes.append(data)


def outbox_of(socket: Any) -> Outbox:
    return Outbox(socket)


async def test_requests_of_one_turn_leave_in_one_write() -> None:
    socket = Socket()
    outbox = outbox_of(socket)
    for turn in range(2):
        for number in range(3):
            outbox.post(3 * turn + number, b"%d" % number)
        assert len(socket.writes) == turn
        await asyncio.sleep(0)

    assert socket.writes == [b"012", b"012"]


async def test_requests_that_are_enough_for_a_write_do_not_wait_for_the_end_of_the_turn() -> None:
    socket = Socket()
    outbox = outbox_of(socket)
    outbox.post(1, b"a" * 4095)
    assert socket.writes == []
    outbox.post(2, b"b")
    assert socket.writes == [b"a" * 4095 + b"b"]

    outbox.post(3, b"c")
    assert len(socket.writes) == 1, "what follows is counted anew"
    await asyncio.sleep(0)
    assert socket.writes[1:] == [b"c"]


async def test_a_game_that_reads_slowly_gets_no_more_until_it_has_read() -> None:
    socket = Socket()
    outbox = outbox_of(socket)
    socket.unsent = 256 * 1024 + 1
    outbox.post(1, b"first")
    await asyncio.sleep(0)
    outbox.post(2, b"second")
    assert socket.writes == []

    socket.unsent = 256 * 1024
    await until(lambda: socket.writes == [b"firstsecond"])
    outbox.post(3, b"third")
    await asyncio.sleep(0)
    assert socket.writes == [b"firstsecond", b"third"]


async def test_one_timer_waits_for_a_game_that_reads_slowly_however_many_requests_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link_module, "_RETRY_SECONDS", 3600.0)
    socket = Socket()
    outbox = outbox_of(socket)
    socket.unsent = 256 * 1024 + 1
    for number in range(20):
        outbox.post(number, b"x")
        await asyncio.sleep(0)

    assert socket.looks == 1
    assert len(outbox.waiting) == 20


async def test_much_at_once_is_split_into_writes_of_a_bounded_size() -> None:
    socket = Socket()
    outbox = outbox_of(socket)
    socket.unsent = 256 * 1024 + 1
    for number in range(6):
        outbox.post(number, b"x" * 128 * 1024)
    socket.unsent = 0

    await until(lambda: len(socket.writes) == 2)
    assert [len(data) // 1024 for data in socket.writes] == [3 * 128, 3 * 128]


async def test_nothing_is_queued_for_a_socket_that_has_closed() -> None:
    socket = Socket()
    outbox = outbox_of(socket)
    socket.state = State.CLOSED
    outbox.post(1, b"late")
    await asyncio.sleep(0)

    assert (socket.writes, outbox.waiting) == ([], {})
