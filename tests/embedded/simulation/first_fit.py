"""A deliberately simple placer, so that simulations can be tried without a scheduler."""

from __future__ import annotations

from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import Bind, Controller, Plan
from bayplan.embedded.control.view import NODES, PODS, StoreView
from bayplan.embedded.nodes.registration import condition_status


class FirstFit(Controller[str]):
    """Places every pod on the first ready node with room for it by count: deliberately simple."""

    name = "first-fit"
    storages = (PODS, NODES)

    def __init__(self, view: StoreView, per_node: int = 30) -> None:
        self._view = view
        self._per_node = per_node
        self._waiting: dict[ObjectKey, None] = {}
        self._used: dict[str, int] = {}
        self._ready: list[str] = []

    def notice(self, change: WatchCacheEvent) -> list[str]:
        key = change.entry.key
        if key.storage == NODES:
            self._ready = [
                node["metadata"]["name"]
                for node in self._view.all(NODES)
                if condition_status(node, "Ready") == "True" and not node["spec"].get("taints")
            ]
            return ["all"]
        return self._notice_pod(change)

    def _notice_pod(self, change: WatchCacheEvent) -> list[str]:
        key = change.entry.key
        node = change.entry.fields.get("spec.nodeName", "")
        done = ("Succeeded", "Failed")
        if change.deleted or change.entry.fields.get("status.phase") in done:
            before = change.previous.fields if change.previous else {}
            if node and before.get("status.phase") not in done:
                self._used[node] = self._used.get(node, 0) - 1
            self._waiting.pop(key, None)
            return ["all"] if self._waiting else []
        if not node:
            self._waiting[key] = None
            return ["all"]
        if not (change.previous and change.previous.fields.get("spec.nodeName")):
            self._waiting.pop(key, None)
            self._used[node] = self._used.get(node, 0) + 1
        return []

    def decide(self, key: str) -> Plan:
        plan: Plan = []
        free = {name: self._per_node - self._used.get(name, 0) for name in self._ready}
        open_nodes = iter([name for name in self._ready if free[name] > 0])
        node = next(open_nodes, None)
        for pod in list(self._waiting):
            while node is not None and free[node] <= 0:
                node = next(open_nodes, None)
            if node is None:
                break
            free[node] -= 1
            plan.append(Bind(pod, node))
        return plan
