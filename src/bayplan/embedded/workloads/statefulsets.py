"""StatefulSets: numbered pods with their own claims, created and deleted in order.

OrderedReady creates pod n only when those before it are ready, and deletes the last one first;
Parallel does not wait. Claims are created before their pod and stay when it is deleted, unless the
retention policy deletes them when the set is scaled down. An update replaces pods from the last to
the partition, one at a time.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject, clone
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.control.controller import Create, Delete, Plan, RequeueAfter
from bayplan.embedded.control.facts import PodFacts
from bayplan.embedded.control.view import CLAIMS, PODS, STATEFUL_SETS
from bayplan.embedded.workloads.base import (
    WorkloadController,
    ordinal,
    owner_reference,
    pod_from,
    status_change,
    template_hash,
)

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
REVISION_HASH = "controller-revision-hash"


class StatefulSets(WorkloadController):
    """The StatefulSet controller; keyed by StatefulSet."""

    name = "statefulset-controller"
    storage = STATEFUL_SETS
    storages = (STATEFUL_SETS, PODS)

    def reconcile(self, key: ObjectKey, owner: JsonObject) -> Plan:
        """Create, delete or replace pods, and count them."""
        pods = {ordinal(one.name): (one, pod) for one, pod in self.pods(owner)}
        revision = f"{key.name}-{template_hash(owner)}"
        numbers = _numbers(owner)
        plan = self._grow(owner, pods, numbers, revision)
        plan = plan or self._shrink(owner, pods, numbers)
        plan = plan or self._update(owner, pods, numbers, revision)
        return plan + self._count(key, owner, [pod for _, pod in pods.values()], revision)

    def _grow(
        self,
        owner: JsonObject,
        pods: dict[int, tuple[ObjectKey, PodFacts]],
        numbers: range,
        revision: str,
    ) -> Plan:
        plan: Plan = []
        for number in numbers:
            found = pods.get(number)
            if found is None:
                plan += self._make(owner, number, revision)
            elif found[1].is_terminal and not found[1].is_terminating:
                plan.append(Delete(found[0], found[1].uid))
            if _is_ordered(owner) and (found is None or not self._is_settled(found[1], owner)):
                # Later pods are not changed before this one is ready.
                return plan or [RequeueAfter(30.0)]
        return plan

    def _make(self, owner: JsonObject, number: int, revision: str) -> Plan:
        plan: Plan = []
        meta = owner["metadata"]
        for template in owner["spec"].get("volumeClaimTemplates") or ():
            claim = claim_object(owner, template, number)
            name = ObjectKey(CLAIMS, meta["namespace"], claim["metadata"]["name"])
            if self._view.store.get(name) is None:
                plan.append(Create(CLAIMS, claim))
        return [*plan, Create(PODS, pod_object(owner, number, revision))]

    def _shrink(
        self, owner: JsonObject, pods: dict[int, tuple[ObjectKey, PodFacts]], numbers: range
    ) -> Plan:
        surplus = sorted((number for number in pods if number not in numbers), reverse=True)
        going = [pods[number] for number in surplus]
        if _is_ordered(owner):
            going = going[:1]
        plan: Plan = [Delete(one, pod.uid) for one, pod in going if not pod.is_terminating]
        return plan + self._drop_claims(owner, pods, numbers)

    def _drop_claims(
        self, owner: JsonObject, pods: dict[int, tuple[ObjectKey, PodFacts]], numbers: range
    ) -> Plan:
        """Delete the claims of surplus numbers, if the retention policy is Delete."""
        policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
        if policy.get("whenScaled") != "Delete":
            return []
        plan: Plan = []
        number = numbers.stop
        while number not in pods:
            claims = [
                ObjectKey(
                    CLAIMS, owner["metadata"]["namespace"], _claim_name(owner, template, number)
                )
                for template in owner["spec"].get("volumeClaimTemplates") or ()
            ]
            present = [one for one in claims if self._view.store.get(one) is not None]
            if not present:
                break
            plan += [Delete(one) for one in present]
            number += 1
        return plan

    def _update(
        self,
        owner: JsonObject,
        pods: dict[int, tuple[ObjectKey, PodFacts]],
        numbers: range,
        revision: str,
    ) -> Plan:
        strategy = owner["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return []
        partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
        for number in reversed(numbers):
            key, pod = pods[number]
            if number >= partition and _revision(pod) != revision:
                return [] if pod.is_terminating else [Delete(key, pod.uid)]
            if not self._is_settled(pod, owner):
                return []
        return []

    def _is_settled(self, pod: PodFacts, owner: JsonObject) -> bool:
        return pod.is_active and self.is_available(pod, owner)

    def _count(
        self, key: ObjectKey, owner: JsonObject, pods: list[PodFacts], revision: str
    ) -> Plan:
        active = [pod for pod in pods if pod.is_active]
        updated = sum(_revision(pod) == revision for pod in active)
        before = (owner.get("status") or {}).get("currentRevision") or revision
        wanted = owner["spec"].get("replicas") or 0
        done = updated == wanted == len(active)
        return [
            *status_change(
                key,
                owner,
                {
                    "replicas": len(pods),
                    "readyReplicas": sum(pod.is_ready for pod in active),
                    "availableReplicas": self.count_available(active, owner),
                    "currentReplicas": sum(_revision(pod) == before for pod in active),
                    "updatedReplicas": updated,
                    "currentRevision": revision if done else before,
                    "updateRevision": revision,
                    "observedGeneration": owner["metadata"].get("generation", 1),
                    "collisionCount": 0,
                },
            )
        ]


def pod_object(owner: JsonObject, number: int, revision: str) -> JsonObject:
    """Return pod n of a set, with its claims as volumes."""
    name = f"{owner['metadata']['name']}-{number}"
    pod = pod_from(owner, name=name)
    labels = {POD_NAME: name, POD_INDEX: str(number), REVISION_HASH: revision}
    pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **labels}
    spec = pod["spec"]
    spec["hostname"] = name
    if owner["spec"].get("serviceName"):
        spec["subdomain"] = owner["spec"]["serviceName"]
    templates = owner["spec"].get("volumeClaimTemplates") or ()
    named = {template["metadata"]["name"] for template in templates}
    others = [one for one in spec.get("volumes") or () if one["name"] not in named]
    spec["volumes"] = others + [
        {
            "name": template["metadata"]["name"],
            "persistentVolumeClaim": {"claimName": _claim_name(owner, template, number)},
        }
        for template in templates
    ]
    return pod


def claim_object(owner: JsonObject, template: JsonObject, number: int) -> JsonObject:
    """Return the claim of pod n from one of the set's templates."""
    meta = template["metadata"]
    selector = (owner["spec"].get("selector") or {}).get("matchLabels") or {}
    made: JsonObject = {
        "metadata": {
            "name": _claim_name(owner, template, number),
            "namespace": owner["metadata"]["namespace"],
            "labels": {**(meta.get("labels") or {}), **selector},
        },
        "spec": clone(template["spec"]),
    }
    if meta.get("annotations"):
        made["metadata"]["annotations"] = dict(meta["annotations"])
    policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    if policy.get("whenDeleted") == "Delete":
        made["metadata"]["ownerReferences"] = [owner_reference(owner)]
    return made


def _claim_name(owner: JsonObject, template: JsonObject, number: int) -> str:
    return f"{template['metadata']['name']}-{owner['metadata']['name']}-{number}"


def _numbers(owner: JsonObject) -> range:
    start = (owner["spec"].get("ordinals") or {}).get("start") or 0
    return range(start, start + (owner["spec"].get("replicas") or 0))


def _is_ordered(owner: JsonObject) -> bool:
    return bool(owner["spec"].get("podManagementPolicy") != "Parallel")


def _revision(pod: PodFacts) -> str:
    return (pod.metadata.labels or {}).get(REVISION_HASH, "")
