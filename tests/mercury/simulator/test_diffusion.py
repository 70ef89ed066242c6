"""Diffusion: noise that becomes a text, the same way every time."""

from bridgehead.mercury.simulator.diffusion import NOISE, STEPS, steps

TOKENS = ["You", " asked", " about", " bridges", "."] * 4


def test_the_text_becomes_readable_step_by_step_and_ends_exact() -> None:
    seen = list(steps(TOKENS, 7))
    noise = [sum(text.count(sign) for sign in NOISE) for text in seen]

    assert len(seen) == STEPS + 1
    assert seen[-1] == "".join(TOKENS)
    assert noise[0] > noise[STEPS // 2] > noise[-1] == 0
    assert {len(text) for text in seen} == {len(seen[-1])}


def test_a_seed_always_refines_in_the_same_way() -> None:
    assert list(steps(TOKENS, 7)) == list(steps(TOKENS, 7)) != list(steps(TOKENS, 8))
