"""A corpus of kube-scheduler's decisions: one small cluster, one pod and the answers on each
line.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

CORPORA = Path(__file__).parent / "corpora"


class Expectation(msgspec.Struct, kw_only=True):
    """What kube-scheduler said under one set of feature gates."""

    gates: dict[str, bool] = {}
    prefilter: dict[str, Any] | None = None
    nodes: dict[str, dict[str, Any]] | None = None
    scores: dict[str, dict[str, int]] | None = None
    preempt: dict[str, Any] | None = None


class Case(msgspec.Struct, kw_only=True):
    """One line of a corpus."""

    id: str
    family: str
    objects: list[dict[str, Any]]
    pod: dict[str, Any]
    expect: list[Expectation]


def read(path: Path) -> Iterator[Case]:
    """The cases of a corpus."""
    decoder = msgspec.json.Decoder(Case)
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    for line in text.splitlines():
        if line.strip():
            yield decoder.decode(line)
