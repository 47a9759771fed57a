"""`python -m tests.oracle FILE…`: compare with any corpus; the last line has the figures.

Of recorded requests to an API server, `--family` and `--session` choose some and `-v` shows every
difference; `--level` says which of them are looked for.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.oracle.apiserver import LEVELS, compare_sessions
from tests.oracle.compare import Tally, compare
from tests.oracle.corpus import SessionCase, read_any

MOST_SHOWN = 20


def main(arguments: list[str]) -> int:
    """Run corpora; 0 if everything agrees."""
    asked = _parsed(arguments)
    tally = Tally()
    sessions: list[SessionCase] = []
    for path in asked.corpora:
        for case in read_any(path):
            if not isinstance(case, SessionCase):
                compare(case, tally)
            elif asked.family in ("", case.family) and asked.session in case.name:
                sessions.append(case)
    if sessions:
        _compare_sessions(sessions, tally, asked)
    for difference in () if asked.verbose else tally.differences[:MOST_SHOWN]:
        print(difference)  # noqa: T201 - this is a command
    print(tally)  # noqa: T201
    return 0 if tally.is_full else 1


def _compare_sessions(sessions: list[SessionCase], tally: Tally, asked: argparse.Namespace) -> None:
    comparison = compare_sessions(sessions)
    tally.note_sessions(comparison)
    if asked.verbose:
        for judged in comparison.judged:
            if judged.unequal.get(asked.level):
                print(judged)  # noqa: T201
    print(*comparison.table(), sep="\n")  # noqa: T201


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle")
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--family", default="", help="only sessions of this family")
    parser.add_argument("--session", default="", help="only sessions whose name contains this")
    parser.add_argument("--level", choices=LEVELS, default="everything", help="what -v shows")
    parser.add_argument("-v", dest="verbose", action="store_true", help="show every difference")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
