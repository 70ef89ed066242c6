"""The rig for Windows: its list of skipped tests, its DLL, what it writes down, and what it installs."""

import json
from pathlib import Path

import pytest

from tests.windows import outcomes, skipped
from tests.windows.__main__ import summarize
from tests.windows.forwarder import BCRYPT_PRIMITIVES, make_forwarder
from tests.windows.rig import ROOT, for_windows
from tests.windows.suite import Outcome


def test_every_skipped_test_exists_and_has_a_reason() -> None:
    for entry in skipped.entries():
        assert entry.reason.endswith(".")
        for name in entry.tests:
            file, _, test = name.partition("::")
            assert (ROOT / file).exists(), name
            if test:
                assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8"), name


@pytest.mark.parametrize(
    ("test", "fixtures", "is_skipped"),
    [
        ("tests/host/test_replicas_on_one_port.py::test_x[1]", [], True),
        ("tests/aoc/ranking/test_plot.py::test_y", [], True),
        ("tests/aoc/test_kills.py::test_z", ["data", "breakable_postgres"], True),
        ("tests/aoc/test_kills.py::test_z", ["data"], False),
    ],
)
def test_a_test_is_skipped_by_its_folder_file_name_or_fixture(
    test: str, fixtures: list[str], *, is_skipped: bool
) -> None:
    assert (skipped.reason_for(test, fixtures) is not None) is is_skipped


def test_a_failure_stays_one_and_the_test_that_never_ended_is_named(tmp_path: Path) -> None:
    path = tmp_path / "0.jsonl"
    events = [
        ("began", "a"),
        ("failed", "a"),
        ("passed", "a"),
        ("began", "b"),
        ("passed", "b"),
        ("began", "c"),
    ]
    path.write_text("".join(json.dumps({"event": e, "test": t}) + "\n" for e, t in events), encoding="utf-8")

    found, running = outcomes.read(path)

    assert {test: event["event"] for test, event in found.items()} == {"a": "failed", "b": "passed"}
    assert running == "c"


def test_a_process_is_finished_when_its_last_line_says_so(tmp_path: Path) -> None:
    path = tmp_path / "0.jsonl"
    writer = outcomes.Writer(path)
    assert not outcomes.is_finished(path)
    writer.pytest_runtest_logstart("a")
    assert not outcomes.is_finished(path)
    writer.pytest_sessionfinish()
    assert outcomes.is_finished(path)


@pytest.mark.parametrize(
    ("test", "package"),
    [
        ("tests/mcp/http/test_x.py::test_y[a/b]", "mcp"),
        ("tests/test_cli.py::test_y[a/b]", "product"),
        ("tests/using/archive of aoc", "using"),
    ],
)
def test_a_test_belongs_to_a_package_or_to_the_whole_product(test: str, package: str) -> None:
    assert Outcome(test, "passed", 0.0, "").package == package


@pytest.mark.parametrize(("skipped", "status"), [(4, 0), (5, 1)])
def test_a_whole_run_with_one_skipped_test_in_twenty_fails(
    skipped: int, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    events = ["skipped"] * skipped + ["passed"] * (100 - skipped)
    found = [Outcome(f"tests/mcp/test_x.py::test_{n}", event, 0.1, "") for n, event in enumerate(events)]

    assert summarize(found, is_whole=True) == status
    assert summarize(found, is_whole=False) == 0
    assert f"{skipped}.0% of the tests were skipped" in capsys.readouterr().out


def test_windows_gets_its_own_packages_and_those_for_everybody() -> None:
    locked = (
        "everybody==1.0 \\\n    --hash=sha256:aa\n    # via x\n"
        "here==1.0 ; sys_platform != 'win32' \\\n    --hash=sha256:bb\n"
        "there==1.0 ; sys_platform == 'win32' \\\n    --hash=sha256:cc \\\n    --hash=sha256:dd\n"
        "newer==2.0 ; python_full_version >= '3.12' \\\n    --hash=sha256:ee\n"
    )

    names = [entry.split("==")[0] for entry in for_windows(locked, "3.11")]

    assert names == ["everybody", "there"]
    assert "sha256:dd" in list(for_windows(locked, "3.11"))[1]


def test_the_dll_names_the_function_that_it_forwards_to() -> None:
    name, functions = BCRYPT_PRIMITIVES
    made = make_forwarder(name, functions)

    assert made.startswith(b"MZ")
    assert made[64:68] == b"PE\0\0"
    assert all(word in made for word in (b"ProcessPrng\0", b"ADVAPI32.SystemFunction036\0"))
