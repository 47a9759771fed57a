"""Indexed Jobs: which index a pod has, and sets of indexes as the status writes them."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.control.facts import PodFacts

INDEX = "batch.kubernetes.io/job-completion-index"


def indexed(job: JsonObject) -> bool:
    """Whether each of a job's pods has an index."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def index_of(pod: PodFacts) -> int:
    """A pod's index; -1 if it has none."""
    text = pod.annotation(INDEX)
    return int(text) if text.isdecimal() and len(text) < 10 else -1


def format_indexes(indexes: Iterable[int]) -> str:
    """Indexes in order; three or more in a row as the first and the last: `0,1,3-5`."""
    runs: list[list[int]] = []
    for one in sorted(indexes):
        if runs and runs[-1][-1] == one - 1:
            runs[-1].append(one)
        else:
            runs.append([one])
    return ",".join(_run(one) for one in runs)


def _run(run: list[int]) -> str:
    return f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run))


def parse_indexes(text: str) -> set[int]:
    """The indexes of such a text; what cannot be read is left out."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), int(last or first) + 1))
    return found
