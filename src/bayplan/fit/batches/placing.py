"""Asking some nodes about a pod by filters alone, and placing it on one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bayplan.fit.batches.groups import Group
from bayplan.fit.decision import Decision
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.plugins.base import Filter
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.columns import BoolArray, SlotArray
from bayplan.kube.pods import Pod


def place_on(snapshot: Snapshot, pod: Pod, node: str) -> None:
    """Assume a pod on a node, with the volumes that it would get there."""
    snapshot.assume(pod, snapshot.decision_on(pod, node))


def place_all_on(snapshot: Snapshot, group: Group, pods: Sequence[Pod], node: str) -> None:
    """Assume pods of a group on a node."""
    if group.requirements is not None and group.requirements.first_consumer:
        for pod in pods:
            place_on(snapshot, pod, node)
        return
    decision = Decision(node)
    for pod in pods:
        snapshot.assume(pod, decision)


def passing(evaluation: Evaluation, slots: SlotArray) -> BoolArray:
    """Which of these slots' nodes pass every filter."""
    return passing_all(evaluation.filters, slots)


def passing_all(filters: Iterable[Filter], slots: SlotArray) -> BoolArray:
    """Which of these slots' nodes pass all of these."""
    passes: BoolArray = np.ones(len(slots), dtype=np.bool_)
    for one in filters:
        if one.has_say:
            passes &= one.passes(slots)
    return passes
