"""Install errors: where a text went wrong, counted as editors do."""

import pytest

from bridgehead.install.errors import InstallError, malformed


@pytest.mark.parametrize(
    ("text", "position", "place"),
    [
        ("", 0, (1, 1)),
        ("abc", 2, (1, 3)),
        ("a\nbc", 2, (2, 1)),
        ("a\nbc", 3, (2, 2)),
        ("a\r\nbc", 4, (2, 2)),
        ("a\rbc", 2, (2, 1)),
    ],
)
def test_a_place_is_a_line_and_a_column_from_one(text: str, position: int, place: tuple[int, int]) -> None:
    found = malformed("it ends too early", text, position)

    assert (found.line, found.column) == place
    assert str(found) == f"{place[0]}:{place[1]}: it ends too early"


def test_what_stands_in_the_way_has_its_own_code() -> None:
    assert InstallError("No.", next_step="Yes.").code == "install"
