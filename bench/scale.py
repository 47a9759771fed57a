"""The largest cluster: 100,000 nodes and 1,000,000 pods from one JSON file, in one process.

It takes minutes and a file of 1.3 GiB, so it runs only by its name: `python -m bench scale`.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.load import loaded_alone
from bench.measure import Result

NODES = 100_000
PODS = 1_000_000


def cases() -> Iterator[Result]:
    """Time and memory to load it, and what decisions cost then."""
    seconds, mebibytes, rate = loaded_alone(NODES, PODS)
    yield Result("scale/load/seconds", seconds, "s")
    yield Result("scale/load/memory", mebibytes, "MiB")
    yield Result("scale/plain", rate, "decisions/s")
