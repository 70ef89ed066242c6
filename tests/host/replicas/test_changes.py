"""Changes over replicas: what changes in one process is told to the clients of all."""

from statistics import median
from time import monotonic

from bridgehead.host.replicas.changes import ChangeRelay
from bridgehead.mcp import Bridge
from bridgehead.mcp.changes import RESOURCES, TOOLS, UPDATED, Change, Listener
from bridgehead.runtime.stores.redis import Redis
from tests.runtime.stores.test_redis import connected
from tests.support.proxy import proxied
from tests.support.redis_server import RedisServer
from tests.support.waiting import until

URI = "alpha://note"


class Process:
    """A bridge in one process, and a client of it that listens."""

    def __init__(self, redis: Redis, node: str) -> None:
        self.bridge: Bridge[None] = Bridge("alpha", "1", changing={"tools", "resources"}, subscribable=True)
        self.listener = Listener({TOOLS, RESOURCES}, {URI})
        self.bridge.changed.listen(self.listener)
        self.relay = ChangeRelay(redis, node)
        self.relay.start({"alpha": self.bridge})

    @property
    def pending(self) -> list[Change]:
        return list(self.listener.waiting)

    async def settled(self) -> None:
        """Wait until it listens, and forget what it was told for that."""
        await until(lambda: len(self.pending) == 3)
        self.listener.take()


async def test_a_change_in_one_process_is_told_in_the_other(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as here, connected(redis_server.url) as there:
        one, other = Process(here, "one"), Process(there, "other")
        await one.settled()
        await other.settled()

        one.bridge.changed.resource(URI)
        one.bridge.changed.resource("alpha://unheard")
        one.bridge.changed.tools()

        await until(lambda: other.pending == [(UPDATED, URI), (TOOLS, None)])
        assert one.pending == [(UPDATED, URI), (TOOLS, None)], "each is told once"
        assert other.bridge.changed.generation > 0


async def test_a_change_is_told_in_the_other_within_a_tenth_of_a_second(redis_server: RedisServer) -> None:
    took = []
    async with connected(redis_server.url) as here, connected(redis_server.url) as there:
        one, other = Process(here, "one"), Process(there, "other")
        await one.settled()
        await other.settled()
        for _ in range(31):
            begin = monotonic()
            one.bridge.changed.resource(URI)
            await until(lambda: other.pending)
            took.append(monotonic() - begin)
            other.listener.take()
            one.listener.take()

    assert median(took) < 0.1  # single ones may be late on a busy machine


async def test_after_a_gap_everything_may_have_changed(redis_server: RedisServer) -> None:
    async with proxied(redis_server.port) as proxy, connected(proxy.through(redis_server.url)) as there:
        other = Process(there, "other")
        await other.settled()
        proxy.cut()

        await until(lambda: set(other.pending) == {(TOOLS, None), (RESOURCES, None), (UPDATED, URI)})


async def test_without_redis_the_clients_here_are_told(redis_server: RedisServer) -> None:
    async with proxied(redis_server.port) as proxy, connected(proxy.through(redis_server.url), 0.05) as here:
        one = Process(here, "one")
        await one.settled()
        proxy.fault = "refused"
        proxy.cut()

        one.bridge.changed.tools()

        assert one.pending == [(TOOLS, None)]


async def test_what_could_not_be_told_is_made_up_for_though_nobody_else_missed_anything(
    redis_server: RedisServer,
) -> None:
    async with (
        proxied(redis_server.port) as proxy,
        connected(proxy.through(redis_server.url), 0.05) as here,
        connected(redis_server.url) as there,
    ):
        one, other = Process(here, "one"), Process(there, "other")
        await one.settled()
        await other.settled()
        proxy.fault = "refused"
        proxy.cut()
        await until(lambda: not here.is_up)
        one.bridge.changed.tools()
        proxy.fault = "none"

        await until(lambda: set(other.pending) == {(TOOLS, None), (RESOURCES, None), (UPDATED, URI)})
        one.relay.stop()


async def test_what_is_not_a_notice_of_ours_is_left_alone(redis_server: RedisServer) -> None:
    async with connected(redis_server.url) as here:
        one = Process(here, "one")
        await one.settled()
        for message in (b"{", b'["x","beta","m",null]', b'["x","alpha",1,2]'):
            here.publish("changes", message)
        here.publish("changes", b'["x","alpha","notifications/tools/list_changed",null]')

        await until(lambda: one.pending == [(TOOLS, None)])
        one.relay.stop()
        assert one.bridge.changed.relay is None
