"""Taints that follow a node's conditions, and the eviction of pods that do not tolerate them.

`not-ready` while Ready is False, `unreachable` while it is Unknown, each both to keep new pods away
(NoSchedule) and to evict those that do not tolerate it for long (NoExecute); `unschedulable` while
the node is cordoned.

A toleration with `tolerationSeconds` lets it stay that long after the taint was added; if several
tolerations match, the shortest counts. A taint that goes in time saves the pod. Pods whose node is
gone altogether are deleted at once, since no kubelet will ever end them.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import (
    Controller,
    Delete,
    Plan,
    RequeueAfter,
    Stage,
    Tell,
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


class Taints(Controller[str]):
    """Keyed by node."""

    name = "node-taints"
    storages = (NODES,)

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def notice(self, change: Change) -> Iterable[str]:
        """Every change of a node."""
        return () if change.deleted else (change.entry.key.name,)

    def decide(self, key: str) -> Plan:
        """Set the taints that the node should have and has not, and the other way round."""
        node = self._stage.view.get(NODES, "", key)
        if node is None or _pairs(node) == wanted_taints(node):
            return []
        now = self._stage.now()
        return [Update(Key(NODES, "", key), lambda obj: retainted(obj, now))]


def wanted_taints(node: JsonObject) -> set[tuple[str, str]]:
    """The taints, of those that are ours to set, that a node's state asks for."""
    wanted: set[tuple[str, str]] = set()
    unwell = _BY_READY.get(condition_status(node, "Ready"))
    if unwell:
        wanted |= {(unwell, "NoSchedule"), (unwell, "NoExecute")}
    if (node.get("spec") or {}).get("unschedulable"):
        wanted.add((UNSCHEDULABLE, "NoSchedule"))
    return wanted


def retainted(node: JsonObject, now: str) -> JsonObject:
    """The node with the taints that its state asks for; others stay."""
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
"""How long a pod may be on a node that is not there: it may be about to register."""
_TAINTED = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
_ABSENT = ("DeletionByPodGC", "PodGC: node no longer exists")


class Eviction(Controller[Key]):
    """Keyed by pod."""

    name = "taint-eviction"
    storages = (NODES, PODS)

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._absent: dict[Key, float] = {}
        self._tainted: set[str] = set()

    def notice(self, change: Change) -> Iterable[Key]:
        """Pods of nodes whose taints changed or that are gone; new pods on such nodes."""
        entry = change.entry
        if entry.key.storage == PODS:
            return self._notice_pod(change)
        had, has = entry.key.name in self._tainted, False
        if not change.deleted:
            has = bool(_evicting(entry.object()))
        (self._tainted.add if has else self._tainted.discard)(entry.key.name)
        if not (had or has or change.deleted):
            return ()
        return [key for key, _ in self._stage.view.pods_on(entry.key.name)]

    def _notice_pod(self, change: Change) -> Iterable[Key]:
        entry = change.entry
        node = entry.fields.get("spec.nodeName", "")
        if change.deleted or not node:
            return ()
        present = self._stage.view.store.get(Key(NODES, "", node)) is not None
        return () if present and node not in self._tainted else (entry.key,)

    def decide(self, key: Key) -> Plan:
        """Evict the pod, or say when to look again."""
        pod = self._stage.view.pods.get(key)
        if pod is None or not pod.node:
            self._absent.pop(key, None)
            return []
        node = self._stage.view.get(NODES, "", pod.node)
        if node is None:
            return self._orphaned(key, pod)
        self._absent.pop(key, None)
        return self._tainted_node(key, pod, _evicting(node))

    def _tainted_node(self, key: Key, pod: PodFacts, taints: list[JsonObject]) -> Plan:
        if not taints or pod.deleting or pod.terminal:
            return []
        leaves = min(self._leaves(pod, taint) for taint in taints)
        left = leaves - self._stage.seconds()
        if left == float("inf"):
            return []
        if left > 0:
            return [RequeueAfter(left)]
        now = self._stage.now()
        said = f"Marking for deletion Pod {key.namespace}/{key.name}"
        return [
            Tell(key, "TaintManagerEviction", said, source="taint-eviction-controller"),
            Update(key, lambda obj: _disrupted(obj, now, *_TAINTED), "status"),
            Delete(key, pod.uid),
        ]

    def _leaves(self, pod: PodFacts, taint: JsonObject) -> float:
        """When a taint makes a pod leave; never if it is tolerated without end."""
        typed = Taint(key=taint["key"], effect="NoExecute", value=taint.get("value") or "")
        matching = [one for one in pod.spec.tolerations or () if tolerates(one, typed)]
        if not matching:
            return 0.0
        seconds = [one.toleration_seconds for one in matching]
        limits = [one for one in seconds if one is not None]
        if not limits:
            return float("inf")
        added = taint.get("timeAdded")
        return (moment(added) if added else self._stage.seconds()) + max(0, min(limits))

    def _orphaned(self, key: Key, pod: PodFacts) -> Plan:
        since = self._absent.setdefault(key, self._stage.seconds())
        left = since + ABSENT_SECONDS - self._stage.seconds()
        if left > 0:
            return [RequeueAfter(left)]
        del self._absent[key]
        now = self._stage.now()
        failed = [] if pod.terminal else [Update(key, lambda obj: _lost(obj, now), "status")]
        return [*failed, Delete(key, pod.uid, 0)]


def _evicting(node: JsonObject) -> list[JsonObject]:
    taints = (node.get("spec") or {}).get("taints") or ()
    return [taint for taint in taints if taint.get("effect") == "NoExecute"]


def _lost(pod: JsonObject, now: str) -> JsonObject:
    """Nobody will ever say how it ended, so it has failed."""
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
