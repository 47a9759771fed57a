"""ReplicaSets: as many pods as are wanted; the least useful go first."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.controller import Create, Delete, Plan, RequeueAfter
from bayplan.embedded.control.facts import PodFacts
from bayplan.embedded.control.storages import PODS, REPLICA_SETS
from bayplan.embedded.workloads.base import Workload
from bayplan.embedded.workloads.template import generate_name, pod_from, status_change

BURST = 500
"""Pods made or deleted in one go; the rest follows at once, after others had their turn."""


class ReplicaSets(Workload):
    """Keyed by ReplicaSet."""

    name = "replicaset-controller"
    storage = REPLICA_SETS
    storages = (REPLICA_SETS, PODS)

    def reconcile(self, key: Key, owner: JsonObject) -> Plan:
        """Make or delete pods, and count them."""
        pods = self.pods(owner)
        active = [(one, pod) for one, pod in pods if pod.active]
        missing = (owner["spec"].get("replicas") or 0) - len(active)
        plan: Plan = []
        if missing > 0:
            name = {"generateName": generate_name(owner)}
            plan += [Create(PODS, pod_from(owner, **name)) for _ in range(min(missing, BURST))]
        elif missing < 0:
            victims = sorted(active, key=usefulness)[: min(-missing, BURST)]
            plan += [Delete(one, pod.uid) for one, pod in victims]
        return plan + self._count(key, owner, [pod for _, pod in active])

    def _count(self, key: Key, owner: JsonObject, active: list[PodFacts]) -> Plan:
        ready = sum(pod.ready for pod in active)
        available = self.count_available(active, owner)
        wanted = {
            "replicas": len(active),
            "fullyLabeledReplicas": len(active),
            "readyReplicas": ready,
            "availableReplicas": available,
            "observedGeneration": owner["metadata"].get("generation", 1),
        }
        plan: Plan = [*status_change(key, owner, wanted)]
        if available < ready:
            plan.append(RequeueAfter(1.0))
        return plan


def usefulness(item: tuple[Key, PodFacts]) -> tuple[bool, bool, bool, int, Key]:
    """Pods in the order in which they can best be spared."""
    key, pod = item
    age = "".join(char for char in pod.metadata.creation_timestamp if char.isdigit())
    return bool(pod.node), pod.phase == "Running", pod.ready, -int(age or 0), key
