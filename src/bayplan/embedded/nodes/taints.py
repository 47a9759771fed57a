"""Taints by node conditions, and eviction of pods that do not tolerate them.

`not-ready` while Ready is False, `unreachable` while it is Unknown, each with the effects
NoSchedule and NoExecute; `unschedulable` while the node is cordoned.

A toleration with `tolerationSeconds` delays the eviction by that time after the taint was added; of
several matching tolerations the shortest counts. If the taint is removed in time, the pod stays.
Pods of deleted nodes are deleted at once, since no kubelet will ever end them.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import (
    Controller,
    ControllerContext,
    Delete,
    Plan,
    RecordEvent,
    RequeueAfter,
    Update,
)
from bayplan.embedded.control.facts import PodFacts, moment
from bayplan.embedded.control.view import NODES, PODS
from bayplan.embedded.nodes.registration import (
    NOT_READY,
    UNREACHABLE,
    UNSCHEDULABLE,
    condition_status,
)
from bayplan.kube.nodes import Taint
from bayplan.kube.tolerations import tolerates

_BY_READY = {"False": NOT_READY, "Unknown": UNREACHABLE}
_OURS = (NOT_READY, UNREACHABLE, UNSCHEDULABLE)


class NodeTaints(Controller[str]):
    """Sets the taints of nodes; keyed by node."""

    name = "node-taints"
    storages = (NODES,)

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def notice(self, change: WatchCacheEvent) -> Iterable[str]:
        """Return every changed node."""
        return () if change.deleted else (change.entry.key.name,)

    def decide(self, key: str) -> Plan:
        """Add and remove taints as the node's state requires."""
        node = self._context.view.get(NODES, "", key)
        if node is None or _pairs(node) == wanted_taints(node):
            return []
        now = self._context.now()
        return [Update(ObjectKey(NODES, "", key), lambda obj: with_wanted_taints(obj, now))]


def wanted_taints(node: JsonObject) -> set[tuple[str, str]]:
    """Return the taints that a node's state requires."""
    wanted: set[tuple[str, str]] = set()
    unwell = _BY_READY.get(condition_status(node, "Ready"))
    if unwell:
        wanted |= {(unwell, "NoSchedule"), (unwell, "NoExecute")}
    if (node.get("spec") or {}).get("unschedulable"):
        wanted.add((UNSCHEDULABLE, "NoSchedule"))
    return wanted


def with_wanted_taints(node: JsonObject, now: str) -> JsonObject:
    """Return the node with the taints that its state requires; others stay."""
    spec, wanted = node.setdefault("spec", {}), wanted_taints(node)
    kept = [
        one
        for one in spec.get("taints") or ()
        if one["key"] not in _OURS or (one["key"], one["effect"]) in wanted
    ]
    has = {(one["key"], one["effect"]) for one in kept}
    added = [
        {"key": key, "effect": effect, "timeAdded": now} for key, effect in sorted(wanted - has)
    ]
    spec["taints"] = kept + added
    if not spec["taints"]:
        del spec["taints"]
    return node


def _pairs(node: JsonObject) -> set[tuple[str, str]]:
    taints = (node.get("spec") or {}).get("taints") or ()
    return {(one["key"], one["effect"]) for one in taints if one["key"] in _OURS}


ABSENT_SECONDS = 40.0
"""How long a pod may be on a node that does not exist: it may register soon."""
_TAINTED = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
_ABSENT = ("DeletionByPodGC", "PodGC: node no longer exists")


class TaintEviction(Controller[ObjectKey]):
    """Evicts pods by taints; keyed by pod."""

    name = "taint-eviction"
    storages = (NODES, PODS)

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._absent: dict[ObjectKey, float] = {}
        self._tainted: set[str] = set()

    def notice(self, change: WatchCacheEvent) -> Iterable[ObjectKey]:
        """Return pods of tainted or deleted nodes, and new pods on such nodes."""
        entry = change.entry
        if entry.key.storage == PODS:
            return self._notice_pod(change)
        had, has = entry.key.name in self._tainted, False
        if not change.deleted:
            has = bool(_evicting(entry.object()))
        (self._tainted.add if has else self._tainted.discard)(entry.key.name)
        if not (had or has or change.deleted):
            return ()
        return [key for key, _ in self._context.view.pods_on(entry.key.name)]

    def _notice_pod(self, change: WatchCacheEvent) -> Iterable[ObjectKey]:
        entry = change.entry
        node = entry.fields.get("spec.nodeName", "")
        if change.deleted or not node:
            return ()
        present = self._context.view.store.get(ObjectKey(NODES, "", node)) is not None
        return () if present and node not in self._tainted else (entry.key,)

    def decide(self, key: ObjectKey) -> Plan:
        """Evict the pod, or requeue it."""
        pod = self._context.view.pods.get(key)
        if pod is None or not pod.node:
            self._absent.pop(key, None)
            return []
        node = self._context.view.get(NODES, "", pod.node)
        if node is None:
            return self._orphaned(key, pod)
        self._absent.pop(key, None)
        return self._tainted_node(key, pod, _evicting(node))

    def _tainted_node(self, key: ObjectKey, pod: PodFacts, taints: list[JsonObject]) -> Plan:
        if not taints or pod.is_terminating or pod.is_terminal:
            return []
        leaves = min(self._leaves(pod, taint) for taint in taints)
        left = leaves - self._context.seconds()
        if left == float("inf"):
            return []
        if left > 0:
            return [RequeueAfter(left)]
        now = self._context.now()
        message = f"Marking for deletion Pod {key.namespace}/{key.name}"
        return [
            RecordEvent(key, "TaintManagerEviction", message, source="taint-eviction-controller"),
            Update(key, lambda obj: _disrupted(obj, now, *_TAINTED), "status"),
            Delete(key, pod.uid),
        ]

    def _leaves(self, pod: PodFacts, taint: JsonObject) -> float:
        """Return when a taint evicts a pod; None if it is tolerated forever."""
        typed = Taint(key=taint["key"], effect="NoExecute", value=taint.get("value") or "")
        matching = [one for one in pod.spec.tolerations or () if tolerates(one, typed)]
        if not matching:
            return 0.0
        seconds = [one.toleration_seconds for one in matching]
        limits = [one for one in seconds if one is not None]
        if not limits:
            return float("inf")
        added = taint.get("timeAdded")
        return (moment(added) if added else self._context.seconds()) + max(0, min(limits))

    def _orphaned(self, key: ObjectKey, pod: PodFacts) -> Plan:
        since = self._absent.setdefault(key, self._context.seconds())
        left = since + ABSENT_SECONDS - self._context.seconds()
        if left > 0:
            return [RequeueAfter(left)]
        del self._absent[key]
        now = self._context.now()
        failed = [] if pod.is_terminal else [Update(key, lambda obj: _lost(obj, now), "status")]
        return [*failed, Delete(key, pod.uid, 0)]


def _evicting(node: JsonObject) -> list[JsonObject]:
    taints = (node.get("spec") or {}).get("taints") or ()
    return [taint for taint in taints if taint.get("effect") == "NoExecute"]


def _lost(pod: JsonObject, now: str) -> JsonObject:
    """Set a pod to Failed: its node is gone."""
    pod["status"]["phase"] = "Failed"
    return _disrupted(pod, now, *_ABSENT)


def _disrupted(pod: JsonObject, now: str, reason: str, message: str) -> JsonObject:
    status = pod["status"]
    others = [one for one in status.get("conditions") or () if one["type"] != "DisruptionTarget"]
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
    }
    status["conditions"] = [*others, condition]
    return pod
