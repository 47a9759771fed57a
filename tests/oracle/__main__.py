"""`python -m tests.oracle FILE…`: compare with any corpus; the last line has the figures."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.oracle.compare import Tally, compare
from tests.oracle.corpus import read_any

MOST_SHOWN = 20


def main(paths: list[str]) -> int:
    """Run corpora; 0 if everything agrees."""
    tally = Tally()
    for path in paths:
        for case in read_any(Path(path)):
            compare(case, tally)
    for difference in tally.differences[:MOST_SHOWN]:
        print(difference)  # noqa: T201 - this is a command
    print(tally)  # noqa: T201
    return 0 if tally.is_full else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
