"""Asking some nodes about a pod by filters alone, and placing it on one."""

from __future__ import annotations

import numpy as np

from bayplan.fit.evaluation import Evaluation, has_say
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.columns import BoolArray, SlotArray
from bayplan.kube.pods import Pod


def place_on(snapshot: Snapshot, pod: Pod, node: str) -> None:
    """Assume a pod on a node, with the volumes that it would get there."""
    snapshot.assume(pod, snapshot.decision_on(pod, node))


def passing(evaluation: Evaluation, slots: SlotArray) -> BoolArray:
    """Which of these slots' nodes pass every filter."""
    passes: BoolArray = np.ones(len(slots), dtype=np.bool_)
    for one in evaluation.filters:
        if has_say(one):
            passes &= one.passes(slots)
    return passes
