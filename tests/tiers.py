"""Which tests try whole programs, clusters, days or corpora, or many cases; all others are quick.

`make unit` runs the quick ones, within 90 seconds on two cores; `make test` runs all. A test is
told by where it stands, so that no file has to say it.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDERS = frozenset(
    [
        *("aws", "browser", "deploy", "docs", "faults", "oracle"),
        *("packaging", "simulating", "simulation"),
    ]
)
"""Folders of such tests."""
FILES = re.compile(
    r"""test_(
        .*_?stor(y|ies) | .*process(es)? | .*commands? | .*kubectl | .*faults | killed | kills
      | random_.* | restarts | mutations | fixes_hold | old_programs | official_client
      | real_clients | any_cluster | daemons | up | demo | completion | on_a_terminal
      | scheduler | autoscaler | simulate(d|_ends)? | labs | costs | registry
      | workload_files | .*properties | .*permissions | hostile_input | ranks | hints | mix
      | live | workers | serving | rows | refusals | dump | unreachable | web | replay
      | registration | reset | crew | election
    )\.py""",
    re.VERBOSE,
)
"""Files of such tests in other folders."""
LONGEST = ("packaging", "docs", "simulating", "cli")
"""Folders with tests that take long alone, in the order in which they begin."""


def turn(path: Path) -> int:
    """When a file's tests come: long ones first, quick ones last, so that no worker ends alone."""
    if not is_whole(path):
        return len(LONGEST) + 1
    return next((n for n, folder in enumerate(LONGEST) if folder in path.parts), len(LONGEST))


def is_whole(path: Path) -> bool:
    """Whether tests of this file are of that kind."""
    return not FOLDERS.isdisjoint(path.parts) or FILES.fullmatch(path.name) is not None
