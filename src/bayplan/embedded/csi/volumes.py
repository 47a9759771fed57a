"""Which volumes pods need, and whether they are there."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import Stage
from bayplan.embedded.control.facts import PodFacts
from bayplan.embedded.control.storages import CLAIMS, VOLUMES
from bayplan.embedded.control.view import View
from bayplan.embedded.csi.claims import phase
from bayplan.embedded.csi.drivers import Driver
from bayplan.kube.storage import SELECTED_NODE


class Volumes:
    """Which volumes a pod needs, and whether they are attached to its node."""

    def __init__(self, stage: Stage, drivers: Mapping[str, Driver]) -> None:
        self._view = stage.view
        self._drivers = drivers

    def needed(self, pod: PodFacts) -> dict[str, Driver]:
        """The attachable volumes of a pod, by name; those of unbound claims are not known yet."""
        found = {}
        for claim in pod.claims:
            name = self._bound(pod.metadata.namespace, claim)
            driver = self._driver(name) if name else None
            if name and driver is not None and driver.attach_required:
                found[name] = driver
        return found

    def ready(self, pod: PodFacts) -> bool:
        """Whether all its claims are bound, and their volumes attached to its node."""
        if not pod.spec.volumes:
            return True
        names = [self._bound(pod.metadata.namespace, claim) for claim in pod.claims]
        if not all(names):
            return False
        return all(self.attached(name, pod.node) for name in self.needed(pod))

    def attached(self, volume: str, node: str) -> bool:
        """Whether a volume is attached to a node."""
        found = self._view.attachments_of(volume)
        return any(one.spec.node_name == node and one.status.attached for one in found)

    def concerned(self, change: Change) -> list[Key]:
        """The pods that wait for what a change of a claim or an attachment brought."""
        key = change.entry.key
        if key.storage == CLAIMS:
            return [pod for pod, _ in self._view.pods_using(key.namespace, key.name)]
        found = self._view.attachments.get(key.name)
        return self.users(found.volume) if found is not None and found.status.attached else []

    def users(self, volume: str) -> list[Key]:
        """The pods that use a volume by its claim."""
        found = self._view.get(VOLUMES, "", volume) or {}
        claim = (found.get("spec") or {}).get("claimRef") or {}
        namespace, name = claim.get("namespace", ""), claim.get("name", "")
        return [pod for pod, _ in self._view.pods_using(namespace, name)]

    def _bound(self, namespace: str, claim: str) -> str:
        found = self._view.get(CLAIMS, namespace, claim)
        if found is None or phase(found) != "Bound":
            return ""
        return str(found["spec"].get("volumeName") or "")

    def _driver(self, volume: str) -> Driver | None:
        found = self._view.get(VOLUMES, "", volume) or {}
        return self._drivers.get(((found.get("spec") or {}).get("csi") or {}).get("driver", ""))


def chosen_node(view: View, key: Key, claim: JsonObject) -> str:
    """The node that a scheduler chose for a claim, or that a pod with it was bound to."""
    selected = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
    if selected:
        return str(selected)
    users = view.pods_using(key.namespace, key.name)
    return next((pod.node for _, pod in users if pod.node), "")


def claims_of_bound_pod(view: View, change: Change) -> list[Key]:
    """The claims of a pod that has just got its node."""
    was = change.previous.fields.get("spec.nodeName") if change.previous else ""
    pod = view.pods.get(change.entry.key)
    if pod is None or was or not pod.node:
        return []
    return [Key(CLAIMS, change.entry.key.namespace, claim) for claim in pod.claims]
