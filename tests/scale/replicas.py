"""Several replicas behind HAProxy, which sends each request to the next one, and a Redis between them."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.interop.node import ROOT
from tests.interop.server_process import listening, serving
from tests.support.ports import free_port
from tests.support.redis_server import RedisServer, running_redis

__all__ = ["ROOT", "balanced", "environment_of", "replicated"]

COUNT = 2
CONFIGURATION = """\
global
    maxconn 4096
defaults
    mode http
    timeout connect 5s
    timeout client 300s
    timeout server 300s
    timeout check 30s
    option redispatch
    retries 3
    retry-on conn-failure
frontend clients
    bind 127.0.0.1:{port}
    stats enable
    stats uri /balancer
    default_backend replicas
backend replicas
    balance roundrobin
    http-reuse always
    option httpchk GET /readyz
    http-check expect status 200
{servers}
"""


def haproxy_configuration(port: int, addresses: list[str]) -> str:
    """Write a configuration that sends each request to the next replica that is ready."""
    servers = "\n".join(
        f"    server r{number} {address.removeprefix('http://')} check inter 100ms fall 1 rise 1"
        for number, address in enumerate(addresses)
    )
    return CONFIGURATION.format(port=port, servers=servers)


def environment_of(redis: RedisServer, **more: str) -> dict[str, str]:
    """Make the environment of replicas that share a Redis."""
    return {
        **os.environ,
        "BRIDGEHEAD_REDIS_URL": redis.url,
        "BRIDGEHEAD_STATE_KEYS": "a-key-that-these-replicas-have-in-common",
        "LOG_LEVEL": "error",
        **more,
    }


@contextmanager
def balanced(folder: Path, addresses: list[str]) -> Iterator[str]:
    """Run HAProxy before some addresses, and give its own."""
    program = shutil.which("haproxy") or "/usr/sbin/haproxy"
    port = free_port()
    file = folder / "haproxy.cfg"
    file.write_text(haproxy_configuration(port, addresses), encoding="utf-8")
    subprocess.run([program, "-c", "-q", "-f", str(file)], check=True)
    with listening([program, "-db", "-q", "-f", str(file)], port) as address:
        yield address


@contextmanager
def replicated(module: str, count: int = COUNT, **more: str) -> Iterator[str]:
    """Run replicas of a host behind HAProxy, and give the address of that."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        redis = stack.enter_context(running_redis(folder))
        environment = environment_of(redis, **more)
        addresses = []
        for number in range(count):
            own = {**environment, "BRIDGEHEAD_STATE_DIR": str(folder / f"state-{number}")}
            addresses.append(stack.enter_context(serving(module, "--port", own)))
        yield stack.enter_context(balanced(folder, addresses))
