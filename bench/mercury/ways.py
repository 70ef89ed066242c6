"""The ways that are compared: through the bridge, through others that do the same, and straight."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.error import URLError
from urllib.request import urlopen

from bench.http import free_port
from bench.mercury.direct_way import DirectWay, Httpx2, OwnPool
from bench.mercury.http_way import HttpWay
from bench.mercury.mcp_way import McpWay
from bench.mercury.upstream import KEY, MODEL, Upstream
from bench.peers import HOME, NotInstalled, install_ours, install_python
from bench.process import NotRunning, Process

HERE = Path(__file__).resolve().parent
PEERS = HOME / "mercury"
PROXY_KEY = "sk-benchmark-of-the-mercury-bridge-0123456789"
START_LIMIT = 90.0
STATE = HOME / "mercury-state"

_CONFIG = """\
model_list:
  - model_name: {model}
    litellm_params:
      model: inception/{model}
      api_base: {url}
      api_key: {key}
general_settings:
  master_key: {proxy_key}
litellm_settings:
  telemetry: false
"""


class Way(Protocol):
    """Something that carries a chat call."""

    def chat(self, words: int) -> float:
        """Make one call and return the seconds that it took."""
        ...

    def first_token(self, words: int) -> float:
        """Make one streamed call and return the seconds until something of the answer was there."""
        ...


class StreamingWay(Way, Protocol):
    """Something that carries many streams at once."""

    def streams(self, count: int, words: int) -> float:
        """Make streamed calls at once and return the seconds until the last one was answered."""
        ...


@dataclass(frozen=True)
class Contestant:
    """One way with its name, and the direct way that it is counted from."""

    key: str
    title: str
    way: StreamingWay
    process: Process
    direct: str


@dataclass(frozen=True)
class LineUp:
    """Everybody who takes part, and why the others do not."""

    contestants: list[Contestant]
    direct: dict[str, Way]
    problems: dict[str, str]


CLIENTS: dict[str, Callable[[str], DirectWay]] = {
    "pool": OwnPool,
    "httpx2": Httpx2,
}
TITLES = {
    "ours": "Bridgehead",
    "sdk": "official SDK + httpx2",
    "sdk_coalesced": "official SDK + httpx2, coalescing",
    "litellm": "LiteLLM proxy",
}


@contextmanager
def line_up(upstream: Upstream) -> Iterator[LineUp]:
    """Start everybody."""
    with ExitStack() as stack:
        found = LineUp([], _direct(stack, upstream), {})
        for key, start in (("ours", _ours), ("sdk", _sdk), ("sdk_coalesced", _sdk), ("litellm", _litellm)):
            print(f"starting {TITLES[key]}", flush=True)
            try:
                found.contestants.append(start(stack, upstream, key))
            except (NotInstalled, NotRunning) as problem:
                found.problems[key] = str(problem)
        yield found


def _direct(stack: ExitStack, upstream: Upstream) -> dict[str, Way]:
    clients = {name: make(upstream.url) for name, make in CLIENTS.items()}
    raw = HttpWay(upstream.port, KEY)
    for close in (*(client.close for client in clients.values()), raw.close):
        stack.callback(close)
    return {**clients, "socket": raw}


def bridge_command(upstream: Upstream, **settings: str) -> tuple[str, ...]:
    """Say how the bridge is started, in an environment as a user has it."""
    environment = {
        "MERCURY_API_URL": upstream.url,
        "MERCURY_API_KEY": KEY,
        "RATE_LIMIT_ENABLED": "0",
        "BRIDGEHEAD_STATE_DIR": str(STATE),
        **settings,
    }
    pairs = (f"{name}={value}" for name, value in environment.items())
    return ("env", *pairs, str(install_ours()), "-m", "bridgehead", "mercury")


def _ours(stack: ExitStack, upstream: Upstream, key: str) -> Contestant:
    shutil.rmtree(STATE, ignore_errors=True)
    STATE.mkdir(parents=True)
    process = stack.enter_context(Process(bridge_command(upstream)))
    way = McpWay(process)
    way.start()
    return Contestant(key, TITLES[key], way, process, "pool")


def _sdk(stack: ExitStack, upstream: Upstream, key: str) -> Contestant:
    python = install_python(PEERS, HERE / "peers.txt")
    mode = "coalesced" if key == "sdk_coalesced" else "each"
    server = str(HERE / "servers" / "sdk_httpx2.py")
    process = stack.enter_context(Process((str(python), server, upstream.url, mode)))
    way = McpWay(process)
    way.start()
    return Contestant(key, TITLES[key], way, process, "httpx2")


def _litellm(stack: ExitStack, upstream: Upstream, key: str) -> Contestant:
    python = install_python(PEERS, HERE / "peers.txt")
    config = PEERS / "litellm.yaml"
    config.write_text(_CONFIG.format(model=MODEL, url=upstream.url, key=KEY, proxy_key=PROXY_KEY))
    port = free_port()
    options = ("--config", str(config), "--host", "127.0.0.1", "--port", str(port))
    quiet = ("LITELLM_LOG=ERROR", "LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_TELEMETRY=False")
    program = str(python.parent / "litellm")
    process = stack.enter_context(Process(("env", *quiet, program, *options)))
    _wait(process, port)
    way = HttpWay(port, PROXY_KEY)
    stack.callback(way.close)
    return Contestant(key, TITLES[key], way, process, "socket")


def _wait(process: Process, port: int) -> None:
    """Wait until the proxy says that it is alive."""
    while time.perf_counter() - process.started < START_LIMIT:
        if not process.alive:
            raise NotRunning(process.complaint())
        try:
            with urlopen(f"http://127.0.0.1:{port}/health/liveliness", timeout=1):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise NotRunning("it did not listen in time")
