"""Generic ephemeral volumes: a claim for each, owned by its pod."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject, clone
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import Controller, ControllerContext, Create, Plan
from bayplan.embedded.control.view import CLAIMS, PODS


class EphemeralClaims(Controller[ObjectKey]):
    """The ephemeral volume controller; keyed by pod."""

    name = "ephemeral-volumes"
    storages = (PODS,)

    def __init__(self, context: ControllerContext) -> None:
        self._view = context.view

    def notice(self, change: WatchCacheEvent) -> Iterable[ObjectKey]:
        """Return new pods with ephemeral volumes."""
        if change.previous is not None or change.deleted:
            return ()
        pod = self._view.pods.get(change.entry.key)
        volumes = pod.spec.volumes or () if pod is not None else ()
        return (change.entry.key,) if any(one.ephemeral for one in volumes) else ()

    def decide(self, key: ObjectKey) -> Plan:
        """Create the missing claims."""
        pod = self._view.object(key)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return []
        wanted = (
            _claim(pod, one) for one in pod["spec"].get("volumes") or () if "ephemeral" in one
        )
        return [Create(CLAIMS, claim) for claim in wanted if not self._present(claim)]

    def _present(self, claim: JsonObject) -> bool:
        meta = claim["metadata"]
        return self._view.store.get(ObjectKey(CLAIMS, meta["namespace"], meta["name"])) is not None


def _claim(pod: JsonObject, volume: JsonObject) -> JsonObject:
    template = volume["ephemeral"]["volumeClaimTemplate"]
    meta = pod["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    kept = {
        field: value
        for field, value in (template.get("metadata") or {}).items()
        if field in ("labels", "annotations")
    }
    return {
        "metadata": {
            "name": f"{meta['name']}-{volume['name']}",
            "namespace": meta["namespace"],
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            **kept,
        },
        "spec": clone(template["spec"]),
    }
