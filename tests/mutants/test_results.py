"""Results: what was measured is known by its code, and what has changed since is named."""

from pathlib import Path

import pytest

from tests.mutants import results


def test_code_is_told_from_other_code_and_not_by_its_comments_and_docstrings() -> None:
    same = '"""Other words."""\n\n\ndef act(a):  # why\n    """Words."""\n\n    return (a +\n        1)\n'

    assert results.digest("def act(a): return a + 1") == results.digest(same)
    assert results.digest("def act(a): return a + 1") != results.digest("def act(a): return a + 2")


def test_a_target_has_changed_until_its_code_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {"bridgehead.one": "a = 1", "bridgehead.two": "b = 2"}
    monkeypatch.setattr(results, "RECORD", tmp_path / "results.md")
    monkeypatch.setattr(results, "known_targets", lambda: list(sources))
    monkeypatch.setattr(results, "source_of", sources.__getitem__)

    for module, source in sources.items():
        assert module in results.find_changed()
        results.record(results.Result(module, 4, [], 1.0, results.digest("c = 3")))
        assert module in results.find_changed()
        results.record(results.Result(module, 4, [], 1.0, results.digest(source)))
    assert results.find_changed() == []
    sources["bridgehead.one"] = "a = 2"

    assert results.find_changed() == ["bridgehead.one"]
    assert "| `bridgehead.two` | 4 | 4 | 0 | 100% |" in (tmp_path / "results.md").read_text()
