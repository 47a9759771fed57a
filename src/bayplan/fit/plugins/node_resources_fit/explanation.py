"""What is short in numbers, and what would lift it: a smaller request, by exactly as much."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bayplan.fit import amounts
from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Filter
from bayplan.fit.plugins.moves import move_a_pod
from bayplan.fit.plugins.node_resources_fit.filter import TOO_MANY_PODS, NodeResourcesFit
from bayplan.fit.plugins.node_resources_fit.smaller import with_requests_at_most
from bayplan.fit.plugins.trial import Explaining, Lacks, Proposal, Trial
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import SlotArray
from bayplan.kube.pods import Pod
from bayplan.kube.requests import pod_requests


def ask_for_less(trial: Trial) -> Iterable[Step]:
    """Request what is free of everything that is short, unless nothing is."""
    resources = trial.filter(NodeResourcesFit)
    if resources is None or TOO_MANY_PODS in trial.refusal.reasons:
        return
    short = resources.shortages(trial.slot)
    asked = pod_requests(trial.pod)
    if not short or any(free <= 0 for _, free in short.values()):
        return
    pod = with_requests_at_most(trial.pod, {name: free for name, (_, free) in short.items()})
    if pod is None:
        return
    said = [_less(name, asked[name], free) for name, (_, free) in short.items()]
    largest = max((asked[name] - free) / asked[name] for name, (_, free) in short.items())
    text, what = f"request {' and '.join(said)}", " and ".join(short)
    yield Step(FixKind.SMALLER_REQUEST, text, 2 + 6 * largest, pod, less_of=what)


def _less(name: str, asked: int, free: int) -> str:
    less = amounts.of(name, asked - free)
    had = amounts.number(name, asked)
    return f"{less} less: {amounts.number(name, free)} instead of {had}"


def _details(trial: Trial) -> list[str]:
    resources = trial.filter(NodeResourcesFit)
    short = resources.shortages(trial.slot) if resources else {}
    return [
        f"wants {amounts.of(name, wanted)}, {amounts.number(name, max(free, 0))} free"
        for name, (wanted, free) in short.items()
    ]


def _lacking(one: Filter, pod: Pod, cluster: Cluster, slots: SlotArray) -> Lacks:  # noqa: ARG001
    """All lack alike; the larger a share of the request is missing, the more it costs."""
    shares = (
        one.missing_shares(slots) if isinstance(one, NodeResourcesFit) else np.zeros(len(slots))
    )
    return Lacks(2.0 + np.minimum(6.0 * shares, 1.5 + shares / 10))


EXPLAINING = Explaining(
    details=_details,
    proposals=(Proposal(ask_for_less), Proposal(move_a_pod, tries=True)),
    lacking=_lacking,
)
