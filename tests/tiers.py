"""Which tests try whole programs, clusters, days or corpora, or many cases; all others are quick.

`make unit` runs the quick ones, in about a minute and a half on two cores; `make test` runs all.
Files of the others are marked: `pytestmark = pytest.mark.whole`.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

LONGEST = ("packaging", "docs", "simulation", "cli")
"""Folders with tests that take long alone, in the order in which they begin."""
_MARK = re.compile(r"^pytestmark = .*?\bpytest\.mark\.whole\b", re.MULTILINE | re.DOTALL)


def turn(path: Path) -> int:
    """When a file's tests come: long ones first, quick ones last, so that no worker ends alone."""
    if not is_whole(path):
        return len(LONGEST) + 1
    return next((n for n, folder in enumerate(LONGEST) if folder in path.parts), len(LONGEST))


@functools.cache
def is_whole(path: Path) -> bool:
    """Whether a file's tests are of that kind, which is known before it is imported."""
    return path.suffix == ".py" and _MARK.search(path.read_text()) is not None
