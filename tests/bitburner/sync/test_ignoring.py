"""Ignoring: patterns mean what they mean in .gitignore; git itself is asked where it is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from bridgehead.bitburner.sync.ignoring import DEFAULTS, IgnoreRules

CASES = [
    ("*.log", ["a.log", "b/c.log"], ["a.logs", "log"]),
    ("build/", ["build/x.js", "a/build/x.js"], ["build", "rebuild/x.js"]),
    ("/only.js", ["only.js"], ["a/only.js"]),
    ("lib/*.js", ["lib/a.js"], ["lib/a/b.js", "x/lib/a.js"]),
    ("lib/**", ["lib/a.js", "lib/a/b.js"], ["lib"]),
    ("**/old", ["old/a.js", "x/old/a.js", "x/y/old"], ["older/a.js"]),
    ("a/**/z.js", ["a/z.js", "a/b/c/z.js"], ["b/a/z.js"]),
    ("?.js", ["a.js", "x/b.js"], ["ab.js"]),
    ("[ab].js", ["a.js"], ["c.js"]),
    ("[!ab].js", ["c.js"], ["a.js"]),
    ("*.js\n!keep.js", ["a.js"], ["keep.js", "x/keep.js"]),
    ("x/\n!x/keep.js", ["x/keep.js", "x/a.js"], ["y/keep.js"]),
    ("# no pattern\n\n   \nreal.js", ["real.js"], ["# no pattern"]),
    (r"\#odd.js", ["#odd.js"], ["odd.js"]),
    (r"\!odd.js", ["!odd.js"], ["odd.js"]),
    ("a.js   ", ["a.js"], ["b.js"]),
    ("a+b(c).js", ["a+b(c).js"], ["aab(c).js"]),
    ("*a*b*c.js", ["abc.js", "xaybzc.js", "aabbc.js", "d/abcc.js"], ["acb.js", "abc.jsx"]),
    ("lib/*a*/b*b.js", ["lib/a/bb.js", "lib/xay/bxb.js"], ["lib/x/bb.js", "lib/a/b.js"]),
    ("**/a/**/*b*/c*.js", ["a/b/c.js", "x/a/a/y/abb/cc.js"], ["a/c.js", "b/a/c.js"]),
]


@pytest.mark.parametrize(("patterns", "ignored", "kept"), CASES)
def test_patterns_are_those_of_git(patterns: str, ignored: list[str], kept: list[str]) -> None:
    rules = IgnoreRules(patterns.split("\n"))

    assert [path for path in ignored if not rules.ignores(path)] == []
    assert [path for path in kept if rules.ignores(path)] == []


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_agrees(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for patterns, ignored, kept in CASES:
        (tmp_path / ".gitignore").write_text(patterns + "\n", encoding="utf-8")
        paths = [path for path in (*ignored, *kept) if path not in ("build", "lib")]
        asked = subprocess.run(
            ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "--stdin", "-z"],
            input="\0".join(paths).encode(),
            capture_output=True,
            check=False,
        )
        assert {path for path in asked.stdout.decode().split("\0") if path} == set(ignored), patterns


def test_a_pattern_that_makes_no_sense_does_no_harm() -> None:
    rules = IgnoreRules(["[z-a].js", "[", "!", "/", "a.js"])

    assert rules.ignores("a.js")
    assert not rules.ignores("b.js")


def test_what_editors_git_and_package_managers_keep_is_ignored_unless_it_is_taken_back() -> None:
    plain = IgnoreRules(DEFAULTS)
    for path in (".vscode/settings.json", "a/.eslintrc.json", "node_modules/x/a.js", "package-lock.json"):
        assert plain.ignores(path)
    assert not plain.ignores("package.json")
    assert not IgnoreRules((*DEFAULTS, "!.eslintrc.json")).ignores("a/.eslintrc.json")


@pytest.mark.parametrize("pattern", ["*a" * 40 + "b", "**/a/" * 40 + "b", "**/*a*a/" * 20 + "b"])
def test_a_pattern_of_many_stars_takes_no_longer_than_its_text_is_long(pattern: str) -> None:
    rules = IgnoreRules([pattern])

    assert not rules.ignores("a" * 400)
    assert not rules.ignores("aa/" * 100 + "a")
    assert rules.ignores(pattern.replace("*", "") + "/a")
