"""Scripts: known to Redis by the digest of their text."""

from bridgehead.runtime.stores import Script
from tests.support.redis_server import RedisServer


def test_a_script_is_named_as_redis_names_it(redis_server: RedisServer) -> None:
    script = Script("return {ARGV[1], 'ü'}")

    assert redis_server.command("SCRIPT", "LOAD", script.text) == f"$40\r\n{script.digest}\r\n".encode()
