"""DaemonSets: one pod for every eligible node.

A node without an available pod counts as unavailable, whether its pod is starting, terminating or
not created yet. Old pods that are not available are deleted at once; of the others as many as
`maxUnavailable` still allows.

The pods are scheduled by the scheduler, with an affinity to the node's name and the tolerations
that Kubernetes adds. Keyed by set and node, so that a changed node costs only its own key; the
empty node name stands for the whole set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey, StoreEntry
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import (
    Controller,
    ControllerContext,
    Create,
    Delete,
    Plan,
    RequeueAfter,
)
from bayplan.embedded.control.facts import PodFacts
from bayplan.embedded.control.view import DAEMON_SETS, NODES, PODS
from bayplan.embedded.workloads.base import (
    generate_name,
    is_available,
    pod_from,
    scaled,
    status_change,
    template_hash,
)
from bayplan.kube.codec import without_nulls
from bayplan.kube.daemonsets import daemon_tolerations, matches_node
from bayplan.kube.nodes import Node
from bayplan.kube.pods import PodSpec, Toleration
from bayplan.kube.tolerations import find_untolerated

NODE_FIELD = "simulation.bayplan.io/daemon-node"
"""Annotation with the node of a pod, so that the affinity need not be parsed."""
REVISION_HASH = "controller-revision-hash"

_PLACING = ("nodeName", "nodeSelector", "affinity", "tolerations", "hostNetwork")
# A node that is not ready yet gets its pod, too: the taint will be removed.
_PASSING = (
    Toleration(key="node.kubernetes.io/not-ready", operator="Exists"),
    Toleration(key="node.kubernetes.io/unreachable", operator="Exists"),
)


def daemon_pod(owner: JsonObject, node: str, digest: str) -> JsonObject:
    """Return the pod of a set for one node."""
    pod = pod_from(owner, generateName=generate_name(owner))
    meta, spec = pod["metadata"], pod["spec"]
    meta["labels"] = {**(meta.get("labels") or {}), REVISION_HASH: digest}
    meta["annotations"] = {**(meta.get("annotations") or {}), NODE_FIELD: node}
    spec["tolerations"] = msgspec.to_builtins(_tolerations(_placing(spec)))
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    wanted = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [wanted]}
    return pod


def fits(owner: JsonObject, node: Node) -> bool:
    """Return whether a node is eligible: by selector, affinity and taints."""
    spec = _placing(owner["spec"]["template"]["spec"])
    if spec.node_name and spec.node_name != node.name:
        return False
    held = (*_tolerations(spec), *_PASSING)
    return matches_node(spec, node) and find_untolerated(node.spec.taints, held) is None


def _tolerations(spec: PodSpec) -> list[Toleration]:
    return daemon_tolerations(spec.tolerations, host_network=spec.host_network)


def _placing(spec: JsonObject) -> PodSpec:
    """Return the scheduling fields of a template."""
    fields = {field: spec[field] for field in _PLACING if field in spec}
    return msgspec.convert(without_nulls(fields), PodSpec)


ByNode = Mapping[str, list[tuple[ObjectKey, PodFacts]]]
Available = Callable[[PodFacts], bool]


def revision(pod: PodFacts) -> str:
    """Return the template hash of a pod."""
    return (pod.metadata.labels or {}).get(REVISION_HASH, "")


def replace_old(owner: JsonObject, wanted: ByNode, is_available: Available) -> Plan:
    """Return the deletions of old pods, given the pods of every eligible node."""
    strategy = owner["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return []
    digest = template_hash(owner)
    most = (strategy.get("rollingUpdate") or {}).get("maxUnavailable") or 1
    spare = scaled(most, len(wanted), up=True)
    unwell: list[tuple[ObjectKey, PodFacts]] = []
    well: list[tuple[ObjectKey, PodFacts]] = []
    for name in sorted(wanted):
        active = [(key, pod) for key, pod in wanted[name] if pod.is_active]
        old = [(key, pod) for key, pod in active if revision(pod) != digest]
        if any(is_available(pod) for _, pod in active):
            well += old
        else:
            spare -= 1
            unwell += old
    return [Delete(key, pod.uid) for key, pod in (*unwell, *well[: max(0, spare)])]


COUNT_SECONDS = 1.0
"""Counting reads all pods of a set, so it is done once for many changes."""

_decode_node = msgspec.json.Decoder(Node).decode


class DaemonKey(NamedTuple):
    """A set on a node, or the whole set."""

    owner: ObjectKey
    node: str


class DaemonSets(Controller[DaemonKey]):
    """The DaemonSet controller; keyed by set and node."""

    name = "daemonset-controller"
    storages = (DAEMON_SETS, PODS, NODES)

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view
        self._nodes: dict[str, tuple[bytes, Node]] = {}
        self._counted: dict[ObjectKey, float] = {}
        self._made: dict[tuple[str, str], set[ObjectKey]] = defaultdict(set)
        """Pods by owner and by the node that they were made for."""

    def notice(self, change: WatchCacheEvent) -> Iterable[DaemonKey]:
        """Return sets, those of changed pods, and those of nodes with changed labels or taints."""
        entry = change.entry
        if entry.key.storage == DAEMON_SETS:
            return (DaemonKey(entry.key, ""),)
        if entry.key.storage == NODES:
            return self._notice_node(entry, change.deleted)
        return self._notice_pod(change)

    def _notice_pod(self, change: WatchCacheEvent) -> Iterable[DaemonKey]:
        owners = [self._view.store.by_uid(uid) for uid in change.entry.owners]
        keys = [one.key for one in owners if one is not None and one.key.storage == DAEMON_SETS]
        if not keys:
            return ()
        node = _target(change.entry.object())
        for uid in change.entry.owners:
            made = self._made[uid, node]
            (made.discard if change.deleted else made.add)(change.entry.key)
        return [DaemonKey(key, name) for key in keys for name in (node, "")]

    def _notice_node(self, entry: StoreEntry, deleted: bool) -> Iterable[DaemonKey]:
        name = entry.key.name
        before = self._nodes.pop(name, None)
        if not deleted:
            node = _decode_node(entry.data)
            matters = msgspec.json.encode((node.metadata.labels, node.spec))
            self._nodes[name] = (matters, node)
            if before is not None and before[0] == matters:
                return ()
        return [DaemonKey(one.key, name) for one in self._view.store.list(DAEMON_SETS)]

    def decide(self, key: DaemonKey) -> Plan:
        """Reconcile the set on one node, or the whole set with its counts."""
        owner = self._view.object(key.owner)
        if owner is None or "deletionTimestamp" in owner["metadata"]:
            self._counted.pop(key.owner, None)
            return []
        if key.node:
            return self._on_node(owner, key.node)
        return self._everywhere(key.owner, owner)

    def _on_node(self, owner: JsonObject, node: str) -> Plan:
        keys = sorted(self._made.get((owner["metadata"]["uid"], node), ()))
        return self._place(owner, node, [(one, self._view.pods[one]) for one in keys])

    def _place(self, owner: JsonObject, node: str, mine: list[tuple[ObjectKey, PodFacts]]) -> Plan:
        known = self._nodes.get(node)
        wanted = known is not None and fits(owner, known[1])
        failed: Plan = [Delete(key, pod.uid) for key, pod in mine if pod.is_terminal]
        living = [(key, pod) for key, pod in mine if not pod.is_terminal]
        if not wanted:
            return failed + [Delete(key, pod.uid) for key, pod in living if not pod.is_terminating]
        if not living and not failed:
            return [Create(PODS, daemon_pod(owner, node, template_hash(owner)))]
        return failed

    def _everywhere(self, key: ObjectKey, owner: JsonObject) -> Plan:
        left = self._counted.get(key, 0.0) + COUNT_SECONDS - self._context.seconds()
        generation = owner["metadata"].get("generation", 1)
        if left > 0 and (owner.get("status") or {}).get("observedGeneration") == generation:
            return [RequeueAfter(left)]
        self._counted[key] = self._context.seconds()
        by_node: dict[str, list[tuple[ObjectKey, PodFacts]]] = {}
        for one, pod in self._pods(owner):
            by_node.setdefault(_target_of(pod), []).append((one, pod))
        plan: Plan = []
        for node in sorted({*self._nodes, *by_node}):
            plan += self._place(owner, node, by_node.get(node, []))
        on = {name: by_node.get(name, []) for name in self._wanted(owner)}
        misplaced = sum(name not in on for name in by_node)
        plan += replace_old(owner, on, self._available(owner))
        return plan + self._count(key, owner, on, misplaced)

    def _wanted(self, owner: JsonObject) -> list[str]:
        return [name for name, (_, node) in self._nodes.items() if fits(owner, node)]

    def _count(self, key: ObjectKey, owner: JsonObject, on: ByNode, misplaced: int) -> Plan:
        active = {name: [pod for _, pod in pods if pod.is_active] for name, pods in on.items()}
        digest = template_hash(owner)
        ready = sum(any(pod.is_ready for pod in pods) for pods in active.values())
        is_available = sum(any(map(self._available(owner), pods)) for pods in active.values())
        status = {
            "desiredNumberScheduled": len(on),
            "currentNumberScheduled": sum(bool(pods) for pods in active.values()),
            "numberMisscheduled": misplaced,
            "numberReady": ready,
            "numberAvailable": is_available,
            "numberUnavailable": len(on) - is_available,
            "updatedNumberScheduled": sum(
                any(revision(pod) == digest for pod in pods) for pods in active.values()
            ),
            "observedGeneration": owner["metadata"].get("generation", 1),
        }
        plan: Plan = [*status_change(key, owner, status)]
        return [*plan, RequeueAfter(COUNT_SECONDS)] if is_available < ready else plan

    def _available(self, owner: JsonObject) -> Available:
        now = self._context.seconds()
        return lambda pod: is_available(pod, owner, now)

    def _pods(self, owner: JsonObject) -> list[tuple[ObjectKey, PodFacts]]:
        return self._view.pods_of(owner["metadata"]["uid"])


def _target_of(pod: PodFacts) -> str:
    """Return the node of a daemon pod."""
    return pod.annotation(NODE_FIELD) or pod.node


def _target(pod: JsonObject) -> str:
    notes = pod["metadata"].get("annotations") or {}
    return str(notes.get(NODE_FIELD) or pod["spec"].get("nodeName") or "")
