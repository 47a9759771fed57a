"""Claims, volumes, classes, drivers and attachments: what is refused, kept and filled in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clocks import VirtualClock
from tests.embedded.apiserver.backends import new_backend
from tests.embedded.apiserver.http_client import Http
from tests.embedded.apiserver.refusals import (
    NOTHING,
    changed,
    made,
    refusal_of_change,
    refusal_of_new,
    short_causes,
    with_changes,
)

CLAIM: dict[str, Any] = {
    "metadata": {"name": "c"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "fast",
    },
}
CSI = {"driver": "d.example.com", "volumeHandle": "h"}
VOLUME: dict[str, Any] = {
    "metadata": {"name": "v"},
    "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "csi": CSI},
}
CLASS: dict[str, Any] = {"metadata": {"name": "fast"}, "provisioner": "d.example.com"}
DRIVER: dict[str, Any] = {"metadata": {"name": "d.example.com"}, "spec": {}}
CSI_NODE: dict[str, Any] = {
    "metadata": {"name": "n"},
    "spec": {"drivers": [{"name": "d.example.com", "nodeID": "n", "allocatable": {"count": 5}}]},
}
CAPACITY: dict[str, Any] = {
    "metadata": {"name": "cap"},
    "storageClassName": "fast",
    "capacity": "1Gi",
}
ATTACHMENT: dict[str, Any] = {
    "metadata": {"name": "a"},
    "spec": {
        "attacher": "d.example.com",
        "nodeName": "n",
        "source": {"persistentVolumeName": "v"},
    },
}
OBJECTS = {
    "persistentvolumeclaims": CLAIM,
    "persistentvolumes": VOLUME,
    "storageclasses.storage.k8s.io": CLASS,
    "csidrivers.storage.k8s.io": DRIVER,
    "csinodes.storage.k8s.io": CSI_NODE,
    "csistoragecapacities.storage.k8s.io": CAPACITY,
    "volumeattachments.storage.k8s.io": ATTACHMENT,
}
CLAIMS, VOLUMES, CLASSES, DRIVERS, CSI_NODES, CAPACITIES, ATTACHMENTS = OBJECTS


def source(**kind: Any) -> dict[str, Any]:
    """A volume made of something else."""
    return {"spec.csi": NOTHING, **{f"spec.{name}": value for name, value in kind.items()}}


@pytest.mark.parametrize(
    ("resource", "changes", "causes"),
    [
        (CLAIMS, {"spec.accessModes": []}, ["spec.accessModes: required"]),
        (CLAIMS, {"spec.accessModes": ["Once"]}, ["spec.accessModes: unsupported"]),
        (
            CLAIMS,
            {"spec.accessModes": ["ReadWriteOncePod", "ReadWriteMany"]},
            ["spec.accessModes: forbidden"],
        ),
        (CLAIMS, {"spec.resources": {}}, ["spec.resources[storage]: required"]),
        (
            CLAIMS,
            {"spec.resources.requests.storage": "0"},
            ["spec.resources[storage]: invalid"],
        ),
        (CLAIMS, {"spec.storageClassName": "No"}, ["spec.storageClassName: invalid"]),
        (CLAIMS, {"spec.volumeMode": "Tape"}, ["spec.volumeMode: unsupported"]),
        (
            CLAIMS,
            {"spec.dataSourceRef": {"kind": "Secret", "name": ""}},
            [
                "spec.dataSource.name: required",
                "spec.dataSource: invalid",
                "spec.dataSourceRef.name: required",
                "spec.dataSourceRef: invalid",
            ],
        ),
        (
            CLAIMS,
            {"spec.selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
            ["spec.selector.matchExpressions[0].operator: invalid"],
        ),
        (VOLUMES, {"spec.accessModes": []}, ["spec.accessModes: required"]),
        (VOLUMES, {"spec.capacity": {}}, ["spec.capacity: required", "spec.capacity: unsupported"]),
        (VOLUMES, {"spec.capacity.cpu": "1"}, ["spec.capacity: unsupported"]),
        (VOLUMES, {"spec.capacity.storage": "-1"}, ["spec.capacity[storage]: invalid"]),
        (
            VOLUMES,
            {"spec.persistentVolumeReclaimPolicy": "Burn"},
            ["spec.persistentVolumeReclaimPolicy: unsupported"],
        ),
        (VOLUMES, {"spec.csi": NOTHING}, ["spec: required"]),
        (VOLUMES, {"spec.nfs": {"server": "s", "path": "/"}}, ["spec.csi: forbidden"]),
        (VOLUMES, {"spec.csi.driver": ""}, ["spec.csi.driver: required"]),
        (VOLUMES, {"spec.csi.driver": "a_b"}, ["spec.csi.driver: invalid"]),
        (VOLUMES, {"spec.csi.driver": "a" * 64}, ["spec.csi.driver: too long"]),
        (
            VOLUMES,
            {"spec.csi.nodeStageSecretRef": {}, "spec.csi.nodePublishSecretRef": {}},
            [
                "spec.csi.nodePublishSecretRef.name: required",
                "spec.csi.nodePublishSecretRef.namespace: required",
            ],
        ),
        (
            VOLUMES,
            {"spec.nodeAffinity": {}},
            ["spec.nodeAffinity.required: required"],
        ),
        (
            VOLUMES,
            {"spec.volumeAttributesClassName": "", **source(hostPath={"path": "/x"})},
            ["spec.csi: required", "spec.volumeAttributesClassName: required"],
        ),
        (VOLUMES, source(local={"path": "/x"}), ["spec.nodeAffinity: required"]),
        (
            VOLUMES,
            source(hostPath={"path": "/a/../b", "type": "Hole"}),
            ["spec.hostPath.path: invalid", "spec.hostPath.type: unsupported"],
        ),
        (
            VOLUMES,
            {
                **source(hostPath={"path": "/"}),
                "spec.persistentVolumeReclaimPolicy": "Recycle",
            },
            ["spec.persistentVolumeReclaimPolicy: forbidden"],
        ),
        (
            VOLUMES,
            source(gcePersistentDisk={"pdName": "", "partition": 300}),
            ["spec.persistentDisk.partition: invalid", "spec.persistentDisk.pdName: required"],
        ),
        (VOLUMES, source(nfs={"server": "s", "path": "x"}), ["spec.nfs.path: invalid"]),
        (VOLUMES, source(flocker={}), ["spec.flocker: required"]),
        (VOLUMES, source(cephfs={"monitors": []}), ["spec.cephfs.monitors: required"]),
        (
            VOLUMES,
            source(fc={"targetWWNs": ["a"], "wwids": ["b"]}),
            ["spec.fc.lun: required", "spec.fc.targetWWNs: invalid"],
        ),
        (
            VOLUMES,
            source(iscsi={"targetPortal": "p", "iqn": "x", "lun": 256}),
            ["spec.iscsi.iqn: invalid", "spec.iscsi.lun: invalid"],
        ),
        (
            VOLUMES,
            source(azureDisk={"diskName": "n", "diskURI": "u", "kind": "Managed"}),
            ["spec.azureDisk.diskURI: unsupported"],
        ),
        (
            VOLUMES,
            source(flexVolume={"driver": "d", "options": {"a.k8s.io/b": "c"}}),
            ["spec.flexVolume.options[a.k8s.io/b]: invalid"],
        ),
        (
            VOLUMES,
            source(quobyte={"registry": "nowhere", "volume": ""}),
            ["spec.quobyte.registry: invalid", "spec.quobyte.volume: required"],
        ),
        (
            VOLUMES,
            {"metadata.annotations": {"volume.beta.kubernetes.io/mount-options": "ro"}},
            ["metadata.annotations.volume.beta.kubernetes.io/mount-options: forbidden"],
        ),
        (CLASSES, {"provisioner": ""}, ["provisioner: required"]),
        (CLASSES, {"provisioner": "a b"}, ["provisioner: invalid"]),
        (CLASSES, {"reclaimPolicy": "Recycle"}, ["reclaimPolicy: unsupported"]),
        (CLASSES, {"volumeBindingMode": "Late"}, ["volumeBindingMode: unsupported"]),
        (CLASSES, {"parameters": {"": "a"}}, ["parameters: invalid"]),
        (CLASSES, {"parameters": {"a": "b" * 262144}}, ["parameters: too long"]),
        (
            CLASSES,
            {"allowedTopologies": [{"matchLabelExpressions": [{"key": "a", "values": []}]}]},
            ["allowedTopologies[0].matchLabelExpressions[0].values: required"],
        ),
        (
            CLASSES,
            {
                "allowedTopologies": [
                    {"matchLabelExpressions": [{"key": "a", "values": ["b"]}]},
                    {"matchLabelExpressions": [{"key": "a", "values": ["b", "b"]}]},
                ]
            },
            [
                "allowedTopologies[1].matchLabelExpressions: duplicate",
                "allowedTopologies[1].matchLabelExpressions[0].values[1]: duplicate",
            ],
        ),
        (DRIVERS, {"spec.fsGroupPolicy": "Never"}, ["spec.fsGroupPolicy: unsupported"]),
        (
            DRIVERS,
            {"spec.volumeLifecycleModes": ["Never"]},
            ["spec.volumeLifecycleModes: unsupported"],
        ),
        (
            DRIVERS,
            {"spec.nodeAllocatableUpdatePeriodSeconds": 9},
            ["spec.nodeAllocatableUpdatePeriodSeconds: invalid"],
        ),
        (
            DRIVERS,
            {"spec.tokenRequests": [{"audience": "a"}, {"audience": "a"}]},
            ["spec.tokenRequests[1].audience: duplicate"],
        ),
        (
            DRIVERS,
            {"spec.tokenRequests": [{"audience": "a", "expirationSeconds": 5}]},
            ["spec.tokenRequests[0].expirationSeconds: invalid"],
        ),
        (
            DRIVERS,
            {"spec.serviceAccountTokenInSecrets": True},
            ["spec.serviceAccountTokenInSecrets: invalid"],
        ),
        (
            CSI_NODES,
            {"spec.drivers": [{"name": "d", "nodeID": ""}, {"name": "d", "nodeID": "n"}]},
            ["spec.drivers[0].nodeID: required", "spec.drivers[1].name: duplicate"],
        ),
        (
            CSI_NODES,
            {"spec.drivers.0.allocatable.count": -1, "spec.drivers.0.topologyKeys": ["a", "a"]},
            ["spec.drivers[0].allocatable.count: invalid", "spec.drivers[0]: duplicate"],
        ),
        (CAPACITIES, {"storageClassName": ""}, ["storageClassName: invalid"]),
        (CAPACITIES, {"capacity": "-1"}, ["capacity: invalid"]),
        (ATTACHMENTS, {"spec.attacher": ""}, ["spec.attacher: required"]),
        (ATTACHMENTS, {"spec.nodeName": "No"}, ["spec.nodeName: invalid"]),
        (ATTACHMENTS, {"spec.source": {}}, ["spec.source: required"]),
        (
            ATTACHMENTS,
            {"spec.source.inlineVolumeSpec": {"accessModes": ["ReadWriteOnce"], "csi": CSI}},
            ["spec.source: forbidden"],
        ),
        (
            ATTACHMENTS,
            {
                "spec.source": {
                    "inlineVolumeSpec": {
                        "accessModes": ["ReadWriteOnce"],
                        "nfs": {"server": "s", "path": "/"},
                    }
                }
            },
            ["spec.source.inlineVolumeSpec.csi: required"],
        ),
    ],
)
async def test_what_storage_cannot_be_is_refused_at_its_field(
    resource: str, changes: dict[str, Any], causes: list[str]
) -> None:
    refused = await refusal_of_new(resource, with_changes(OBJECTS[resource], changes))
    assert short_causes(refused) == sorted(causes)


@pytest.mark.parametrize(
    ("resource", "changes", "causes"),
    [
        (CLAIMS, {"spec.accessModes": ["ReadWriteMany"]}, ["spec: forbidden"]),
        (CLAIMS, {"spec.storageClassName": "slow"}, ["spec: forbidden"]),
        (CLAIMS, {"spec.resources.requests.storage": "2Gi"}, ["spec: forbidden"]),
        (CLAIMS, {"spec.volumeMode": "Block"}, ["spec: forbidden", "volumeMode: invalid"]),
        (CLAIMS, {"spec.volumeName": "v"}, []),
        (VOLUMES, {"spec.csi.volumeHandle": "x"}, ["spec.persistentvolumesource: forbidden"]),
        (VOLUMES, {"spec.volumeMode": "Block"}, ["volumeMode: invalid"]),
        (
            VOLUMES,
            {"spec.csi.controllerExpandSecretRef": {"name": "s", "namespace": "default"}},
            [],
        ),
        (VOLUMES, {"spec.capacity.storage": "2Gi", "spec.storageClassName": "slow"}, []),
        (CLASSES, {"provisioner": "x"}, ["provisioner: invalid"]),
        (CLASSES, {"parameters": {"a": "b"}}, ["parameters: invalid"]),
        (CLASSES, {"volumeBindingMode": "WaitForFirstConsumer"}, ["volumeBindingMode: invalid"]),
        (CLASSES, {"allowVolumeExpansion": True, "mountOptions": ["ro"]}, []),
        (DRIVERS, {"spec.attachRequired": False}, ["spec.attachedRequired: invalid"]),
        (
            DRIVERS,
            {"spec.volumeLifecycleModes": ["Ephemeral"]},
            ["spec.volumeLifecycleModes: invalid"],
        ),
        (DRIVERS, {"spec.podInfoOnMount": True}, []),
        (CSI_NODES, {"spec.drivers.0.nodeID": "x"}, ["spec.drivers: invalid"]),
        (CSI_NODES, {"spec.drivers.0.allocatable.count": 9}, []),
        (CAPACITIES, {"storageClassName": "slow"}, ["storageClassName: invalid"]),
        (CAPACITIES, {"capacity": "2Gi"}, []),
        (ATTACHMENTS, {"spec.nodeName": "m"}, ["spec: invalid"]),
    ],
)
async def test_what_storage_was_said_to_be_stays(
    resource: str, changes: dict[str, Any], causes: list[str]
) -> None:
    assert short_causes(await refusal_of_change(resource, OBJECTS[resource], changes)) == causes


@pytest.mark.parametrize(
    ("resource", "changes", "causes"),
    [
        (CLAIMS, {"status.capacity": {"storage": "-1"}}, ["status.capacity[storage]: invalid"]),
        (
            CLAIMS,
            {"status.allocatedResourceStatuses": {"storage": "Growing"}},
            ["status.allocatedResourceStatuses: unsupported"],
        ),
        (
            CLAIMS,
            {"status.allocatedResources": {"cpu": "1"}},
            ["status.allocatedResources: unsupported"],
        ),
        (
            ATTACHMENTS,
            {"status.attachError": {"message": "x" * 1025, "errorCode": -1}},
            ["status.attachError.errorCode: invalid", "status.attachError.message: too long"],
        ),
    ],
)
async def test_what_controllers_say_of_storage_is_checked(
    resource: str, changes: dict[str, Any], causes: list[str]
) -> None:
    refused = await refusal_of_change(resource, OBJECTS[resource], changes, "status")
    assert short_causes(refused) == causes


async def test_claims_and_volumes_begin_pending_and_protected() -> None:
    backend = await new_backend()
    claim = await made(backend, CLAIMS, CLAIM)
    volume = await made(backend, VOLUMES, {**VOLUME, "status": {"phase": "Bound"}})
    assert (claim["status"], claim["spec"]["volumeMode"]) == ({"phase": "Pending"}, "Filesystem")
    created = volume["metadata"]["creationTimestamp"]
    assert volume["status"] == {"phase": "Pending", "lastPhaseTransitionTime": created}
    assert claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert volume["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]


async def test_a_volume_says_since_when_it_is_in_its_phase() -> None:
    clock = VirtualClock()
    backend = await new_backend(clock)
    first = (await made(backend, VOLUMES, VOLUME))["status"]["lastPhaseTransitionTime"]
    clock.skip(60)
    said = await changed(backend, VOLUMES, "v", {"status.message": "a"}, "status")
    assert said["status"]["lastPhaseTransitionTime"] == first
    bound = await changed(backend, VOLUMES, "v", {"status.phase": "Bound"}, "status")
    assert bound["status"]["lastPhaseTransitionTime"] > first


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"dataSource": {"kind": "Secret", "name": "s"}}, None),
        (
            {"dataSource": {"kind": "PersistentVolumeClaim", "name": "s"}},
            {"apiGroup": None, "kind": "PersistentVolumeClaim", "name": "s"},
        ),
        (
            {"dataSourceRef": {"apiGroup": "e.com", "kind": "Maker", "name": "s"}},
            {"apiGroup": "e.com", "kind": "Maker", "name": "s"},
        ),
        ({"dataSourceRef": {"kind": "Maker", "name": "s", "namespace": "other"}}, None),
    ],
)
async def test_what_a_claim_is_filled_from_stands_under_both_names(
    given: dict[str, Any], kept: dict[str, Any] | None
) -> None:
    claim = {**CLAIM, "spec": {**CLAIM["spec"], **given}}
    spec = (await made(await new_backend(), CLAIMS, claim))["spec"]
    assert (spec.get("dataSource"), spec.get("dataSourceRef")) == (kept, kept)


async def test_a_class_and_a_driver_are_filled_in() -> None:
    backend = await new_backend()
    class_ = await made(backend, CLASSES, CLASS)
    assert (class_["reclaimPolicy"], class_["volumeBindingMode"]) == ("Delete", "Immediate")
    driver = (await made(backend, DRIVERS, DRIVER))["spec"]
    assert (driver["attachRequired"], driver["fsGroupPolicy"]) == (True, "ReadWriteOnceWithFSType")


async def test_an_attacher_leaves_the_metadata_alone() -> None:
    backend = await new_backend()
    await made(backend, ATTACHMENTS, ATTACHMENT)
    said = {"status.attached": True, "metadata.labels": {"a": "b"}, "spec.nodeName": "other"}
    found = await changed(backend, ATTACHMENTS, "a", said, "status")
    assert found["status"] == {"attached": True}
    assert "labels" not in found["metadata"]
    assert found["spec"]["nodeName"] == "n"


async def test_a_claim_grows_only_once_it_is_bound_and_if_its_class_lets_it(http: Http) -> None:
    claims, growing = "/api/v1/namespaces/default/persistentvolumeclaims", dict(CLASS)
    await http.post("/apis/storage.k8s.io/v1/storageclasses", growing)
    await http.post(claims, CLAIM)
    status = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    await http.patch(f"{claims}/c/status", status)
    more = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    refused = await http.patch(f"{claims}/c", more)
    assert (refused.code, "must support resize" in refused.body["message"]) == (403, True)
    allowed = {"allowVolumeExpansion": True}
    await http.patch("/apis/storage.k8s.io/v1/storageclasses/fast", allowed)
    assert (await http.patch(f"{claims}/c", more)).code == 200
    less = {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    refused = await http.patch(f"{claims}/c", less)
    assert refused.code == 422
    assert "less than status.capacity" in refused.body["message"]


async def test_a_deleted_claim_stays_until_a_controller_lets_it_go(http: Http) -> None:
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    await http.post(claims, CLAIM)
    assert "deletionTimestamp" in (await http.delete(f"{claims}/c")).body["metadata"]
    assert (await http.get(f"{claims}/c")).code == 200
    await http.patch(f"{claims}/c", {"metadata": {"finalizers": None}})
    assert (await http.get(f"{claims}/c")).code == 404


async def test_what_nobody_should_use_now_is_warned_of(http: Http) -> None:
    old = {**VOLUME, "spec": {**VOLUME["spec"], "persistentVolumeReclaimPolicy": "Recycle"}}
    answer = await http.post("/api/v1/persistentvolumes", old)
    assert (answer.code, "Recycle" in answer.headers["Warning"]) == (201, True)
