"""What the API server's own record says of pods, node by node, after every single write."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.view import PODS
from bayplan.kube import quantity


class Truth:
    """Listens to a store; whatever must never be is noted in `wrongs` the moment it is."""

    def __init__(self, cpu: float, pods: int, volumes: int) -> None:
        self._most = {"cpu": Fraction(cpu), "pods": Fraction(pods), "volumes": Fraction(volumes)}
        self._pods: dict[str, JsonObject] = {}
        self.binds: Counter[str] = Counter()
        """How often each pod came to a node, by uid."""
        self.wrongs: list[str] = []

    def observe(self, change: WatchCacheEvent) -> None:
        """Take note of a write."""
        if change.entry.key.storage != PODS:
            return
        pod, before = change.entry.object(), self._pods.pop(change.entry.uid, None)
        if change.deleted:
            return
        self._pods[change.entry.uid] = pod
        node, was = _node(pod), "" if before is None else _node(before)
        if was and node != was:
            self.wrongs.append(f"pod {_name(pod)} went from {was} to {node or 'nowhere'}")
        if node and not was:
            self.binds[change.entry.uid] += 1
            self._check(node)

    def _check(self, node: str) -> None:
        used: dict[str, Fraction] = defaultdict(Fraction)
        claims: set[str] = set()
        here = [one for one in self._pods.values() if _node(one) == node and not _ended(one)]
        for pod in here:
            used["cpu"] += _cpu(pod)
            claims |= _claims(pod)
        used["pods"], used["volumes"] = Fraction(len(here)), Fraction(len(claims))
        for name, most in self._most.items():
            if used[name] > most:
                self.wrongs.append(f"node {node} has {float(used[name])} of {float(most)} {name}")

    def waiting(self) -> list[str]:
        """The pods that have no node."""
        return sorted(_name(pod) for pod in self._pods.values() if not _node(pod))

    def nodes(self) -> dict[str, str]:
        """The pods that have a node, each with its own."""
        return {_name(pod): _node(pod) for pod in self._pods.values() if _node(pod)}

    def pod(self, name: str) -> JsonObject:
        """A pod, by its name."""
        return next(pod for pod in self._pods.values() if _name(pod) == name)

    def is_there(self, name: str) -> bool:
        """Whether there is a pod of that name."""
        return any(_name(pod) == name for pod in self._pods.values())


def _name(pod: JsonObject) -> str:
    return str(pod["metadata"]["name"])


def _node(pod: JsonObject) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _ended(pod: JsonObject) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _cpu(pod: JsonObject) -> Fraction:
    asked = (c.get("resources", {}).get("requests", {}) for c in pod["spec"]["containers"])
    return sum((quantity.parse(str(one.get("cpu", "0"))) for one in asked), Fraction())


def _claims(pod: JsonObject) -> set[str]:
    volumes = pod["spec"].get("volumes") or []
    named = (one["persistentVolumeClaim"]["claimName"] for one in volumes
             if "persistentVolumeClaim" in one)  # fmt: skip
    return {str(name) for name in named}
