"""A pod in the way: move it to a node where it fits."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.fit.fixes import Step
from bayplan.fit.plugins.trial import Trial


def move_a_pod(trial: Trial) -> Iterable[Step]:
    """The first pod of the node that can go elsewhere and whose leaving makes room."""
    records = trial.cluster.pods.by_node.get(trial.name, {}).values()
    refusing = trial.refusing
    return trial.move_one_of(
        [one for one in records if refusing is None or refusing.may_yield(one, trial.slot)]
    )


def is_above(trial: Trial, key: str) -> bool:
    """Whether a pod that runs is more important than the one that waits."""
    record = trial.cluster.pods.by_key[key]
    return trial.priority(record.pod) > trial.priority(trial.pod)
