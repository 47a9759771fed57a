"""Corpora of recorded decisions: one small cluster, what was asked of it and the answers on each
line. `family` says what was asked; those about nodes that are given back have `expected` answers,
and those that were put to an API server one after the other have `steps`.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

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
    """A pod, and what kube-scheduler decided about it."""

    id: str
    family: str
    objects: list[dict[str, Any]]
    pod: dict[str, Any]
    expect: list[Expectation]


class EstimatedNodes(msgspec.Struct, kw_only=True):
    """The nodes that Cluster Autoscaler's estimator took of a group, and the pods on them."""

    nodes: int
    placed: int


class ScaleUpExpectation(msgspec.Struct, kw_only=True):
    """What Cluster Autoscaler's estimator said under one set of feature gates."""

    gates: dict[str, bool] = {}
    fits_now: int
    groups: dict[str, EstimatedNodes]


class NodeGroup(msgspec.Struct, kw_only=True):
    """A group of nodes, and what a new one would be."""

    name: str
    template: dict[str, Any]


class ScaleUpCase(msgspec.Struct, kw_only=True):
    """Waiting pods and groups of nodes, and what Cluster Autoscaler would buy of each."""

    id: str
    objects: list[dict[str, Any]]
    pending: list[dict[str, Any]]
    groups: list[NodeGroup]
    expect: list[ScaleUpExpectation]


class ScaleDownCase(msgspec.Struct, kw_only=True):
    """A cluster, and what Cluster Autoscaler would do with each of its nodes."""

    name: str
    objects: list[dict[str, Any]]
    options: dict[str, Any]
    expected: dict[str, Any]


class QueueCase(msgspec.Struct, kw_only=True):
    """Queues, groups and pods, and what Volcano decided about them in one session."""

    name: str
    plugin: Literal["capacity", "proportion"]
    hierarchy: bool
    actions: list[Literal["enqueue", "allocate", "backfill", "preempt", "reclaim"]]
    objects: list[dict[str, Any]]
    expected: dict[str, Any]
    quirk: str = ""
    """The defect of Volcano's that it shows, if it does."""


class Step(msgspec.Struct, kw_only=True):
    """One request to an API server, and what kube-apiserver answered."""

    method: str
    path: str
    query: dict[str, Any] | str | None = None
    headers: dict[str, str | None] | None = None
    """Those that differ from the usual ones; None for one that is not sent."""
    body: Any = None
    """A JSON value; a string is sent as it is."""
    pause: float = 0
    poll: Literal["established", "served", "gone"] | None = None
    """What to wait for, by asking again."""
    expect: dict[str, Any] | None = None


class SessionCase(msgspec.Struct, kw_only=True):
    """Requests in a namespace of their own, one after the other, and kube-apiserver's answers."""

    name: str
    family: str
    steps: list[Step]
    cleanup: list[str] = []


Decision = Case | ScaleUpCase | ScaleDownCase | QueueCase
AnyCase = Decision | SessionCase


class _Asked(msgspec.Struct):
    """What tells corpora apart."""

    family: str
    plugin: str = ""
    expected: msgspec.Raw = msgspec.Raw()
    steps: msgspec.Raw = msgspec.Raw()


def read(path: Path) -> Iterator[Case]:
    """The cases of a corpus of kube-scheduler's decisions."""
    return (case for case in read_any(path) if isinstance(case, Case))


def read_any(path: Path) -> Iterator[AnyCase]:
    """The cases of a corpus."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    for line in text.splitlines():
        if line.strip():
            asked = msgspec.json.decode(line, type=_Asked)
            if bytes(asked.steps):
                yield msgspec.json.decode(line, type=SessionCase)
            elif asked.plugin:
                yield msgspec.json.decode(line, type=QueueCase)
            elif asked.family == "scaleup":
                yield msgspec.json.decode(line, type=ScaleUpCase)
            elif bytes(asked.expected):
                yield msgspec.json.decode(line, type=ScaleDownCase)
            else:
                yield msgspec.json.decode(line, type=Case)
