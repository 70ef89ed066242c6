"""The command `python -m bench.bitburner.checking`: the script check and the definition search, counted.

--definitions takes a definition file of the real game for the questions.
"""

import argparse
from pathlib import Path

from bench.bitburner.questions import SETS, count_answers
from bridgehead.bitburner.netscript.checking import check_script
from bridgehead.bitburner.netscript.search import Index
from bridgehead.bitburner.simulator.definitions import definitions
from tests.bitburner.netscript.corpus_cases import load

SCRIPT_SETS = (
    "wrong",
    "fresh_wrong",
    "held_wrong",
    "newest_wrong",
    "last_wrong",
    "seeded_wrong",
    "right",
    "fresh_right",
    "held_right",
    "newest_right",
    "last_right",
    "seeded_right",
)


def count_corpus() -> None:
    """Print how many wrong scripts are named, and how many right ones are flagged."""
    index = Index(definitions())
    for kind in SCRIPT_SETS:
        cases = load(kind)
        checked = (
            check_script(
                case.files[case.filename], case.filename, index.definitions, index.search, case.files
            )
            for case in cases
        )
        print(f"{kind}: {sum(map(bool, checked))} of {len(cases)} have problems")


def count_questions(text: str) -> None:
    """Print how often the right declaration comes first, and among the first three."""
    search = Index(text).search
    for title in SETS:
        first, among, asked = count_answers(search, title)
        print(f"questions, {title}: first {first} of {asked}, among three {among} of {asked}")


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--definitions", type=Path)
    options = parser.parse_args()
    count_questions(options.definitions.read_text(encoding="utf-8") if options.definitions else definitions())
    count_corpus()


if __name__ == "__main__":
    main()
