"""The task runner: verbs, their variables, and the Makefile that hands both on."""

import subprocess
import sys
from pathlib import Path

import pytest

import tasks

ROOT = Path(__file__).parents[1]
INSTALL_ATHERIS = ("python", "-m", "pip", "install", "--quiet", *tasks.locked("fuzz"))


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Note what would be run, in a .venv that is ready."""
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(tasks, "set_up", lambda: None)
    monkeypatch.setattr(tasks, "run", lambda *words, **_: commands.append(words))
    for name in ("COVERAGE", "OF", "ARGS", "SECONDS", "BASE", "LOCK_FLAGS"):
        monkeypatch.setenv(name, "")  # so that what a test sets is undone
    return commands


def test_an_unknown_verb_shows_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert tasks.main(["tset"]) == 2
    shown = capsys.readouterr()
    assert [line.split()[0] for line in shown.out.splitlines()[1:]] == list(tasks.VERBS)
    assert shown.err == "Unknown verb 'tset'.\n"


def test_without_a_verb_it_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert tasks.main([]) == 0
    assert "  test         run the tests\n" in capsys.readouterr().out


def test_an_interrupt_ends_it_without_a_traceback(
    ran: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_words: str, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks, "run", interrupt)

    assert tasks.main(["docs"]) == 130
    assert capsys.readouterr() == ("", "")


def test_dist_says_what_it_needs_before_it_makes_anything(
    ran: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "set_up", lambda: ran.append(("set up",)))

    with pytest.raises(SystemExit, match="make dist ARGS='--address https"):
        tasks.main(["dist"])
    assert ran == []


def test_a_failing_program_ends_it_with_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    # The tests may run in another environment than .venv.
    monkeypatch.setattr(tasks, "BIN", Path(sys.executable).parent)

    with pytest.raises(SystemExit) as ended:
        tasks.run("python", "-c", "raise SystemExit(3)")
    assert ended.value.code == 3


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["fuzz"], [INSTALL_ATHERIS, ("python", "-m", "tests.fuzz", "--seconds", "120")]),
        (
            ["fuzz", "SECONDS=30", "ARGS=--seed 7"],
            [INSTALL_ATHERIS, ("python", "-m", "tests.fuzz", "--seconds", "30", "--seed", "7")],
        ),
        (["bench", "OF=aoc"], [("python", "-m", "bench.aoc")]),
        (["compare"], [("python", "-m", "bench.before_after", "HEAD~1")]),
        (["compare", "BASE=v0.2"], [("python", "-m", "bench.before_after", "v0.2")]),
        (["mutants", "ARGS=--seed 7 aoc"], [("python", "-m", "tests.mutants", "--seed", "7", "aoc")]),
        (["frameworks", "ARGS=--ci"], [("python", "-m", "tests.frameworks", "--ci")]),
        (["test"], [("pytest", "-n", "4", "--dist", "loadfile")]),
    ],
)
def test_variables_reach_what_a_verb_runs(
    words: list[str], expected: list[tuple[str, ...]], ran: list[tuple[str, ...]]
) -> None:
    assert tasks.main(words) == 0
    assert ran == expected


def test_coverage_as_a_variable_makes_test_measure(ran: list[tuple[str, ...]]) -> None:
    tasks.main(["test", "COVERAGE=1"])
    assert ran[-1] == ("coverage", "report")


def test_the_demo_does_not_wait_for_the_tools_of_development() -> None:
    assert not tasks.VERBS["demo"].needs_venv


def test_what_is_tested_with_the_systems_servers_exists() -> None:
    assert [path for path in tasks.STORES if not (ROOT / path).exists()] == []


def test_what_lacks_a_program_is_a_line_and_the_rest_runs(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    verbs = {
        "odd": tasks.Verb("", lambda: None, ("make", "no-such-program")),
        "help": tasks.VERBS["help"],
    }
    monkeypatch.setattr(tasks, "VERBS", verbs)
    monkeypatch.setenv("CI", "")
    tasks.run_steps("odd", "help ARGS='1 2'")
    shown = capfd.readouterr().out

    assert shown.count("SKIPPED odd: this machine has no no-such-program\n") == 2
    assert "show this list" in shown
    assert shown.index("show this list") < shown.index("=== all passed")

    monkeypatch.setenv("CI", "1")
    with pytest.raises(SystemExit) as ended:
        tasks.run_steps("help", "odd")
    assert ended.value.code == "With CI set, nothing may be skipped."


def test_the_first_step_that_fails_ends_the_gate(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        tasks.run_steps("help no-such-verb", "site")

    assert ended.value.code == "help failed."
    assert "=== site" not in capfd.readouterr().out


def test_every_step_is_a_verb_and_every_verb_that_tests_is_a_step() -> None:
    steps = {step.split()[0] for step in (*tasks.GATE, *tasks.NIGHTLY, *tasks.OTHERS)}

    assert steps <= tasks.VERBS.keys()
    # These test nothing, take hours, or are part of a step.
    not_steps = (
        "help gate nightly others setup install docs pictures dist lock clean bench compare soak coverage"
    )
    assert tasks.VERBS.keys() - steps == {*not_steps.split(), "mutants"}


@pytest.mark.skipif(sys.platform == "win32", reason="needs make")
def test_make_hands_verbs_and_variables_on(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    (tmp_path / "tasks.py").write_text("import os, sys; print(sys.argv[1], os.environ.get('ARGS'))\n")
    for words, said in (([], "help None"), (["docs", "fuzz", "ARGS=a b"], "docs a b\nfuzz a b")):
        done = subprocess.run(
            ["make", "--silent", f"PYTHON={sys.executable}", *words],
            cwd=tmp_path,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == said
