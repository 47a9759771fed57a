"""What is left of each node, as its kubelet counts it: the last word on whether a pod may run."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.facts import PodFacts
from bayplan.embedded.control.view import NODES, View
from bayplan.kube.pods import Pod
from bayplan.kube.quantity import milli_value, value
from bayplan.kube.requests import pod_requests
from bayplan.kube.resources import CPU, PODS

_decode_pod = msgspec.json.Decoder(Pod).decode


class Fitting:
    """Requests of the pods that kubelets have accepted."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._used: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._counted: dict[Key, tuple[str, dict[str, int]]] = {}

    def lacking(self, key: Key, pod: PodFacts) -> str | None:
        """Count a pod in; if its node has too little of something, say of what instead."""
        entry = self._view.store.get(key)
        if entry is None or key in self._counted:
            return None
        wanted = {**pod_requests(_decode_pod(entry.data)), PODS: 1}
        has, used = self._allocatable(pod.node), self._used[pod.node]
        for name in sorted(wanted):
            if wanted[name] > 0 and used[name] + wanted[name] > has.get(name, 0):
                return name
        self._count(key, pod.node, wanted)
        return None

    def ensure(self, key: Key, pod: PodFacts) -> None:
        """Count a pod that was accepted before; this process may be younger than the cluster."""
        entry = self._view.store.get(key)
        if entry is not None and key not in self._counted:
            self._count(key, pod.node, {**pod_requests(_decode_pod(entry.data)), PODS: 1})

    def forget(self, key: Key) -> None:
        """A pod has ended or is gone."""
        node, amounts = self._counted.pop(key, ("", {}))
        for name, amount in amounts.items():
            self._used[node][name] -= amount

    def _count(self, key: Key, node: str, wanted: dict[str, int]) -> None:
        self._counted[key] = (node, wanted)
        for name, amount in wanted.items():
            self._used[node][name] += amount

    def _allocatable(self, name: str) -> dict[str, int]:
        node = self._view.get(NODES, "", name) or {}
        found = (node.get("status") or {}).get("allocatable") or {}
        return {
            name: milli_value(amount) if name == CPU else value(amount)
            for name, amount in found.items()
        }
