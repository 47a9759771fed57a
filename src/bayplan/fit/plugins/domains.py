"""Domains of a topology, as rules between pods see them: whom a rule means where a node stands, and
the label that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Filter
from bayplan.fit.plugins.node_affinity.explanation import labelled
from bayplan.fit.plugins.trial import Lack, Lacks, Trial, lacks_by_node
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import SlotArray
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.labels import HOSTNAME
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod


def topology_keys(pod: Pod) -> frozenset[str]:
    """The labels that say which domain a node is in, to the pod's own rules."""
    affinity = pod.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    terms = (term.topology_key for side in sides if side for term in side.required)
    spread = (one.topology_key for one in pod.spec.topology_spread_constraints)
    return frozenset((*terms, *spread))


def pods_in_domain(
    trial: Trial, topology_key: str, rule: Hashable, is_meant: Callable[[PodRecord], bool]
) -> list[PodRecord]:
    """The pods that a rule means on nodes of the node's domain."""
    cluster = trial.cluster
    value = trial.node.metadata.labels.get(topology_key)

    def look() -> list[PodRecord]:
        slots = cluster.topology(topology_key).slots_of(value) if value is not None else ()
        there = (cluster.pods.by_node.get(cluster.slots.names[slot], {}) for slot in slots)
        return [record for records in there for record in records.values() if is_meant(record)]

    return trial.once(("domain", topology_key, value, rule), look)


def lacks_by_domain(
    one: Filter, pod: Pod, cluster: Cluster, slots: SlotArray, cost: float
) -> Lacks:
    """What nodes lack, of which the domains matter that they are in."""
    keys = sorted(topology_keys(pod))

    def of_node(node: Node, slot: int) -> Lack:
        labels = node.metadata.labels
        return (one.refusal(slot).reasons, *(labels.get(key) for key in keys)), cost

    return lacks_by_node(of_node, cluster, slots)


def label_topology(trial: Trial) -> list[Step]:
    """Give the node the labels that say in which domains it stands, if it has none."""
    missing: dict[str, Sequence[str]] = {}
    for one in trial.filters:
        for key, values in one.missing_labels(trial.slot).items():
            missing.setdefault(key, values)
    wanted = {key: _value(trial, key, values) for key, values in missing.items()}
    labels = {key: value for key, value in wanted.items() if value}
    if not labels or len(labels) != len(missing):
        return []
    said = ", ".join(f"{key}={value}" for key, value in labels.items())
    text = f"say where node {trial.name} stands: set label {said}"
    puts = (labelled(trial.node, labels),)
    return [Step(FixKind.LABEL_NODE, text, 2.0 * len(labels), trial.pod, puts)]


def _value(trial: Trial, key: str, values: Sequence[str]) -> str:
    """The domain to say: the node's own name where each node is one, or the first that suits."""
    if key == HOSTNAME:
        return trial.name
    return next(iter(values), "")
