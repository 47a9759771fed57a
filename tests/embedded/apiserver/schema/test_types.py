"""The table of types agrees with the official client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kubernetes.client

from bayplan.embedded.apiserver.kinds.builtin import BUILTIN
from bayplan.embedded.apiserver.schema.types import ObjectType, require_type, root_type

_RENAMED = {
    "core.Event": "CoreV1Event",
    "core.EventSeries": "CoreV1EventSeries",
    "core.EndpointPort": "CoreV1EndpointPort",
    "events.Event": "EventsV1Event",
    "events.EventSeries": "EventsV1EventSeries",
    "discovery.EndpointPort": "DiscoveryV1EndpointPort",
    "authentication.TokenRequest": "AuthenticationV1TokenRequest",
    "storage.TokenRequest": "StorageV1TokenRequest",
    "core.ResourceClaim": "CoreV1ResourceClaim",
    "rbac.Subject": "RbacV1Subject",
    "apiextensions.ServiceReference": "ApiextensionsV1ServiceReference",
    "apiextensions.WebhookClientConfig": "ApiextensionsV1WebhookClientConfig",
    "admissionregistration.ServiceReference": "AdmissionregistrationV1ServiceReference",
    "admissionregistration.WebhookClientConfig": "AdmissionregistrationV1WebhookClientConfig",
}
_LATER = {
    "autoscaling.HorizontalPodAutoscalerCondition": {"observedGeneration"},
    "batch.JobSpec": {"scheduling"},
    "core.ClusterTrustBundleProjection": {"user"},
    "core.ConfigMapVolumeSource": {"defaultUser"},
    "core.DownwardAPIVolumeFile": {"user"},
    "core.DownwardAPIVolumeSource": {"defaultUser"},
    "core.EmptyDirVolumeSource": {"mode"},
    "core.GRPCAction": {"mode"},
    "core.HTTPGetAction": {"protocol"},
    "core.KeyToPath": {"user"},
    "core.NodeAllocatableResourceClaimStatus": {"mapping", "overhead"},
    "core.NodeSpec": {"podPreemptionPolicy"},
    "core.NodeSystemInfo": {"runningInUserNamespace"},
    "core.PersistentVolumeClaimStatus": {"healthStatus"},
    "core.PodCertificateProjection": {"user"},
    "core.PodSpec": {"evictionResponders"},
    "core.PodStatus": {"volumeHealth"},
    "core.ProjectedVolumeSource": {"defaultUser"},
    "core.SecretVolumeSource": {"defaultUser"},
    "core.ServiceAccountTokenProjection": {"user"},
    "core.VolumeMount": {"bindMountOptions"},
    "resource.Device": {"nodeAllocatableResources"},
    "resource.DeviceCounterConsumption": {"compatibilityGroups"},
    "resource.DeviceRequestAllocationResult": {"skipNodeOperations"},
    "resource.DeviceSubRequest": {"derivedAttributes"},
    "resource.ExactDeviceRequest": {"derivedAttributes"},
    "resource.ResourceSliceSpec": {"partitionTypeAttribute", "skipNodeOperations"},
    "storage.CSINode": {"status"},
}
"""What the client knows of versions after the one that is served."""


def reachable() -> Iterator[ObjectType]:
    """Every type that a built-in kind needs."""
    waiting = [type_ for kind in BUILTIN if (type_ := root_type(kind.group, kind.kind))]
    seen: set[str] = set()
    while waiting:
        type_ = waiting.pop()
        if type_.name in seen:
            continue
        seen.add(type_.name)
        yield type_
        waiting += [require_type(one.base) for one in type_.fields.values() if one.is_object]


def model_of(type_: ObjectType) -> Any:
    """The official client's model of a type, if it has one."""
    package, _, name = type_.name.partition(".")
    version = "V2" if package == "autoscaling" and "Scale" not in name else "V1"
    return getattr(kubernetes.client, _RENAMED.get(type_.name, f"{version}{name}"), None)


def test_every_kind_has_a_type() -> None:
    assert [kind.kind for kind in BUILTIN if root_type(kind.group, kind.kind) is None] == []


def test_the_types_have_the_fields_that_the_official_client_knows() -> None:
    compared = 0
    for type_ in reachable():
        model = model_of(type_)
        if model is None:
            continue
        known = set(model.attribute_map.values())
        missing = known - set(type_.fields) - {"apiVersion", "kind"} - _LATER.get(type_.name, set())
        assert not missing, f"{type_.name} lacks {missing}"
        compared += 1
    assert compared > 250
