"""Call path: the way of a call as a picture, from a client to the far side and back."""

from bridgehead.aoc.ranking.plot import Theme

STEPS = (
    ("client", "asks"),
    ("transport", "stdio · HTTP"),
    ("request", "who, which era"),
    ("dispatch", "finds the method"),
    ("call hook", "limits, metering, audit"),
    ("tool", "your function"),
    ("far side", "game · files · API"),
)
WIDTH, HEIGHT, GAP, TOP = 128, 58, 22, 14
FONT = "font-family='Verdana, DejaVu Sans, sans-serif'"


def draw(theme: Theme) -> str:
    """Draw the steps from left to right, and the answer back below them."""
    pieces = [_step(number, *step, theme) for number, step in enumerate(STEPS)]
    full = len(STEPS) * (WIDTH + GAP) + GAP - GAP // 2
    bottom = TOP + HEIGHT
    first, last = GAP // 2 + WIDTH / 2, GAP // 2 + (len(STEPS) - 1) * (WIDTH + GAP) + WIDTH / 2
    pieces.append(
        f"<path d='M{last} {bottom + 4} V{bottom + 26} H{first} V{bottom + 8}' fill='none' "
        f"stroke='{theme.leader}' stroke-width='1.6' marker-end='url(#tip)'/>"
        f"<text x='{full / 2}' y='{bottom + 45}' {FONT} font-size='12' text-anchor='middle' "
        f"fill='{theme.faint}'>one answer, or one error that says what to do next</text>"
    )
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{full}' viewBox='0 0 {full} {bottom + 58}' "
        "role='img' aria-label='The way of a call'>"
        f"<defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' "
        f"orient='auto'><path d='M0 0 L8 4 L0 8 z' fill='{theme.leader}'/></marker></defs>"
        f"<rect width='100%' height='100%' rx='8' fill='{theme.paper}'/>{''.join(pieces)}</svg>\n"
    )


def _step(number: int, name: str, about: str, theme: Theme) -> str:
    left = GAP // 2 + number * (WIDTH + GAP)
    middle = left + WIDTH / 2
    arrow = (
        f"<path d='M{left - GAP + 2} {TOP + HEIGHT / 2} H{left - 2}' stroke='{theme.leader}' "
        "stroke-width='1.6' marker-end='url(#tip)'/>"
        if number
        else ""
    )
    return (
        f"{arrow}<rect x='{left}' y='{TOP}' width='{WIDTH}' height='{HEIGHT}' rx='6' fill='none' "
        f"stroke='{theme.other}' stroke-width='1.4'/>"
        f"<text x='{middle}' y='{TOP + 25}' {FONT} font-size='13' font-weight='bold' text-anchor='middle' "
        f"fill='{theme.ink}'>{name}</text>"
        f"<text x='{middle}' y='{TOP + 44}' {FONT} font-size='9.5' text-anchor='middle' "
        f"fill='{theme.faint}'>{about}</text>"
    )
