"""Claims are tied to volumes that somebody made by hand.

A volume whose `claimRef` names a claim is that claim's, which is also how a scheduler hands over a
volume that it chose. Claims that no driver of the cluster provisions take the smallest volume that
is left and suits them; those that wait for their first consumer do so only when its node is known,
and take one that can be used there. Both sides are marked; the provisioner completes the binding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.rest.selectors import select
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import Controller, Edit, Plan, Stage, Update
from bayplan.embedded.control.storages import CLAIMS, CLASSES, NODES, PODS, VOLUMES
from bayplan.embedded.csi import claims
from bayplan.embedded.csi.drivers import Driver
from bayplan.embedded.csi.volumes import chosen_node, claims_of_bound_pod
from bayplan.kube.nodes import Node, NodeSelector
from bayplan.kube.quantity import parse
from bayplan.kube.selectors import compile_node_selector

_decode_node = msgspec.json.Decoder(Node).decode


class Binder(Controller[Key]):
    """Keyed by claim."""

    name = "volume-binder"
    storages = (CLAIMS, VOLUMES, PODS)

    def __init__(self, stage: Stage, drivers: Mapping[str, Driver]) -> None:
        self._view = stage.view
        self._drivers = drivers
        self._named: dict[Key, str] = {}
        """Volumes by the claim that their `claimRef` names."""
        self._free: set[str] = set()

    def notice(self, change: Change) -> Iterable[Key]:
        """Claims, those of pods that were bound, and, for a volume that is free, all of them."""
        key = change.entry.key
        if key.storage == CLAIMS:
            return () if change.deleted else (key,)
        if key.storage == PODS:
            return claims_of_bound_pod(self._view, change)
        return self._notice_volume(change)

    def _notice_volume(self, change: Change) -> Iterable[Key]:
        name = change.entry.key.name
        reference = change.entry.object()["spec"].get("claimRef")
        self._free.discard(name)
        if reference:
            claim = Key(CLAIMS, reference.get("namespace", ""), reference.get("name", ""))
            if change.deleted:
                self._named.pop(claim, None)
                return ()
            self._named[claim] = name
            return (claim,)
        if change.deleted:
            return ()
        self._free.add(name)
        return [entry.key for entry in self._view.store.list(CLAIMS)]

    def decide(self, key: Key) -> Plan:
        """Tie the claim to a volume, if there is one for it."""
        claim = self._view.object(key)
        if claim is None or claim["spec"].get("volumeName") or claims.phase(claim) == "Bound":
            return []
        volume = self._found(key, claim)
        if volume is None:
            return []
        name, reference = volume["metadata"]["name"], claims.claim_reference(claim)
        return [
            Update(Key(VOLUMES, "", name), claims.claimed_by(reference)),
            Update(key, _with_volume(name)),
        ]

    def _found(self, key: Key, claim: JsonObject) -> JsonObject | None:
        class_ = self._view.get(CLASSES, "", claim["spec"].get("storageClassName") or "") or {}
        named = self._view.get(VOLUMES, "", self._named.get(key, ""))
        if named is not None and _names(named, claim):
            return named
        if class_.get("provisioner") in self._drivers:
            return None
        node = chosen_node(self._view, key, claim)
        if class_.get("volumeBindingMode") == "WaitForFirstConsumer" and not node:
            return None
        entry = self._view.store.get(Key(NODES, "", node)) if node else None
        place = _decode_node(entry.data) if entry is not None else None
        free = (self._view.get(VOLUMES, "", name) for name in sorted(self._free))
        return best_volume(claim, [one for one in free if one is not None], place)


def best_volume(
    claim: JsonObject, volumes: Iterable[JsonObject], node: Node | None
) -> JsonObject | None:
    """The smallest free volume that suits a claim, and can be used on its node if it has one."""
    suiting = [one for one in volumes if _suits(claim, one) and _usable(one, node)]
    return min(suiting, key=lambda one: (_size(one), one["metadata"]["name"]), default=None)


def _names(volume: JsonObject, claim: JsonObject) -> bool:
    reference, meta = volume["spec"].get("claimRef") or {}, claim["metadata"]
    same = (reference.get("namespace"), reference.get("name")) == (meta["namespace"], meta["name"])
    return same and reference.get("uid") in (None, "", meta["uid"])


def _suits(claim: JsonObject, volume: JsonObject) -> bool:
    wanted, offered = claim["spec"], volume["spec"]
    selector = wanted.get("selector")
    return (
        not offered.get("claimRef")
        and "deletionTimestamp" not in volume["metadata"]
        and (offered.get("storageClassName") or "") == (wanted.get("storageClassName") or "")
        and offered.get("volumeMode") == wanted.get("volumeMode")
        and set(wanted["accessModes"]) <= set(offered.get("accessModes") or ())
        and (not selector or select(selector, volume["metadata"].get("labels") or {}))
        and _size(volume) >= parse(claims.storage_request(claim))
    )


def _usable(volume: JsonObject, node: Node | None) -> bool:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if node is None or not required:
        return True
    return compile_node_selector(msgspec.convert(required, NodeSelector)).matches(node)


def _size(volume: JsonObject) -> float:
    return float(parse(volume["spec"]["capacity"]["storage"]))


def _with_volume(name: str) -> Edit:
    def edit(claim: JsonObject) -> JsonObject:
        claim["spec"]["volumeName"] = name
        return claim

    return edit
