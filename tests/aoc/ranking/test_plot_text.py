"""Plot text: every name can be drawn, on at most two lines, and no wider than there is room."""

import pytest

from bridgehead.aoc.ranking.plot_text import find_fonts

SIZE = 10.0
LONG = "claude-opus-4.5-thinking-high-20251101-preview-with-an-unusually-long-name"


def test_characters_that_no_font_has_are_drawn_as_boxes_with_a_note() -> None:
    fonts = find_fonts("fox \U0010fffd")

    assert fonts.clean("fox \U0010fffd") == "fox ▯"
    assert "drawn as boxes" in fonts.notes[0]
    assert find_fonts("Grüße, Мир").notes == []


def test_joiners_and_variants_are_left_out_instead_of_drawn_as_boxes() -> None:
    assert find_fonts("a").clean("a\ufe0fb\u200dc") == "abc"


def test_a_text_is_as_wide_as_its_widest_line_and_grows_with_its_size() -> None:
    fonts = find_fonts("")

    assert fonts.width("iii\nWWW\ni", SIZE) == fonts.width("WWW", SIZE) > fonts.width("iii", SIZE)
    assert fonts.width("WWW", 2 * SIZE) == pytest.approx(2 * fonts.width("WWW", SIZE))


def test_a_name_that_fits_stays_on_one_line() -> None:
    assert find_fonts("").fit("gpt4", 1.0, SIZE) == "gpt4"


def test_a_longer_name_breaks_where_a_word_ends() -> None:
    fonts = find_fonts("")

    first, second = fonts.fit("claude-opus-4.5-thinking", 1.0, SIZE).split("\n")

    assert first + second == "claude-opus-4.5-thinking"
    assert first.endswith("-")


@pytest.mark.parametrize("name", [LONG, "W" * 60, "x" * 500])
def test_what_does_not_fit_on_two_lines_is_cut_off_with_a_sign(name: str) -> None:
    fonts = find_fonts("")

    fitted = fonts.fit(name, 1.0, SIZE)

    assert fitted.count("\n") == 1
    assert fitted.endswith("…")
    assert fonts.width(fitted, SIZE) <= 1.0


def test_a_sentence_is_wrapped_between_its_words_and_loses_none() -> None:
    fonts = find_fonts("")
    sentence = "Ranked by the geometric mean of the ratios to the leader on puzzles that both ran"

    lines = fonts.wrap(sentence, 1.5, SIZE)

    assert " ".join(lines) == sentence
    assert len(lines) > 2
    assert all(fonts.width(line, SIZE) <= 1.5 for line in lines)
