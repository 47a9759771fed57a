"""What the API server's own record says of queues, after every single write."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.view import PODS
from bayplan.kube import quantity
from tests.scheduler.batch.objects import OPT_IN

QUEUE_OF = "test/queue"
"""The label by which a test says which queue a pod is in, whoever asks."""


class QuotaTruth:
    """Listens to a store; whatever must never be is noted in `wrongs` the moment it is.

    A pod claims quota from when it loses its gate, is called Unschedulable or has a node, until it
    is gone, or is told that its time is over.
    """

    def __init__(self, limits: dict[str, Fraction], parents: dict[str, str]) -> None:
        self._limits = limits
        self._parents = parents
        self.pods: dict[str, JsonObject] = {}
        self.binds: Counter[str] = Counter()
        self._gated: set[str] = set()
        self.wrongs: list[str] = []

    def observe(self, change: WatchCacheEvent) -> None:
        """Take note of a write."""
        if change.entry.key.storage != PODS:
            return
        uid, pod = change.entry.uid, change.entry.object()
        before = self.pods.pop(uid, None)
        if change.deleted:
            return
        self.pods[uid] = pod
        if pod["spec"].get("schedulingGates"):
            self._gated.add(uid)
            if reason_of(pod) == "Unschedulable":
                self.wrongs.append(f"{name_of(pod)} is gated, and said to be Unschedulable")
        if node_of(pod) and not (before and node_of(before)):
            self.binds[uid] += 1
        if self._claims(uid, pod) and not (before and self._claims(uid, before)):
            self._check(pod)

    def claimed(self, queue: str) -> Fraction:
        """What the pods of a queue and of those below it claim."""
        claiming = (pod for uid, pod in self.pods.items() if self._claims(uid, pod))
        return sum(
            (cpu_of(pod) for pod in claiming if queue in self.path(queue_of(pod))), Fraction()
        )

    def path(self, queue: str) -> list[str]:
        """A queue and those above it."""
        path = [queue]
        while self._parents.get(path[-1]):
            path.append(self._parents[path[-1]])
        return path

    def _claims(self, uid: str, pod: JsonObject) -> bool:
        if pod["spec"].get("schedulingGates") or not queue_of(pod):
            return False
        if node_of(pod):
            return True
        if not OPT_IN.items() <= (pod["metadata"].get("annotations") or {}).items():
            return False
        reason = reason_of(pod)
        return reason == "Unschedulable" or (uid in self._gated and reason != "ReservationTimedOut")

    def _check(self, pod: JsonObject) -> None:
        for queue in self.path(queue_of(pod)):
            limit = self._limits.get(queue)
            if limit is not None and self.claimed(queue) > limit:
                text = f"queue {queue}: {float(self.claimed(queue))} of {float(limit)}"
                self.wrongs.append(f"{text}, by {name_of(pod)} ({reason_of(pod)})")


def name_of(pod: JsonObject) -> str:
    return str(pod["metadata"]["name"])


def queue_of(pod: JsonObject) -> str:
    return str((pod["metadata"].get("labels") or {}).get(QUEUE_OF, ""))


def node_of(pod: JsonObject) -> str:
    return str(pod["spec"].get("nodeName") or "")


def reason_of(pod: JsonObject) -> str:
    conditions = (pod.get("status") or {}).get("conditions") or []
    found = (one for one in conditions if one["type"] == "PodScheduled")
    return next((str(one.get("reason", "")) for one in found if one["status"] == "False"), "")


def cpu_of(pod: JsonObject) -> Fraction:
    asked = (c.get("resources", {}).get("requests", {}) for c in pod["spec"]["containers"])
    return sum((quantity.parse(str(one.get("cpu", "0"))) for one in asked), Fraction())
