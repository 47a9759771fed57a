"""The table of types: it agrees with the official client, checks shapes and reads protobuf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kubernetes.client
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.builtin import BUILTIN
from bayplan.embedded.apiserver.schema import protobuf, times
from bayplan.embedded.apiserver.schema.checking import Mismatch, Report, check_object
from bayplan.embedded.apiserver.schema.internal import difference, internal_form
from bayplan.embedded.apiserver.schema.types import ObjectType, require_type, root_type

POD = require_type("core.Pod")
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


@pytest.mark.parametrize(
    ("obj", "field"),
    [
        ({"spec": []}, "spec"),
        ({"spec": {"containers": [{"name": 5}]}}, "spec.containers[0].name"),
        ({"metadata": {"labels": {"a": 1}}}, "metadata.labels.a"),
        ({"spec": {"hostNetwork": "yes"}}, "spec.hostNetwork"),
        ({"spec": {"priority": 2**31}}, "spec.priority"),
        ({"metadata": {"creationTimestamp": "yesterday"}}, "metadata.creationTimestamp"),
        ({"spec": {"overhead": {"cpu": "fast"}}}, "spec.overhead.cpu"),
    ],
)
def test_a_value_of_a_wrong_type_is_named(obj: dict[str, Any], field: str) -> None:
    with pytest.raises(Mismatch) as found:
        check_object(obj, POD, Report([]))
    assert found.value.field == field


def test_unknown_fields_and_nulls_are_taken_out() -> None:
    pod: dict[str, Any] = {
        "metadata": {"name": "a", "nope": 1},
        "spec": {"nodeName": None, "containers": [{"name": "c", "imagee": "x"}]},
    }
    report = Report([], whole=False)
    check_object(pod, POD, report)
    assert report.unknown == ["metadata.nope", "spec.containers[0].imagee"]
    assert pod == {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}


@pytest.mark.parametrize(
    ("type_", "said", "kept"),
    [
        ("core.ConfigMap", {"data": {}}, {"metadata": {}}),
        ("core.Container", {"name": "c", "image": ""}, {"name": "c", "resources": {}}),
        ("core.PodSpec", {"containers": [], "hostNetwork": False}, {"containers": None}),
        ("core.PodSpec", {"containers": [], "priority": 0}, {"containers": None, "priority": 0}),
        ("rbac.Role", {"rules": []}, {"metadata": {}, "rules": None}),
        (
            "policy.PodDisruptionBudget",
            {"spec": {"minAvailable": 0}},
            {
                "metadata": {},
                "spec": {"minAvailable": 0},
                "status": {
                    "disruptionsAllowed": 0,
                    "currentHealthy": 0,
                    "desiredHealthy": 0,
                    "expectedPods": 0,
                },
            },
        ),
        (
            "core.NodeCondition",
            {"type": "Ready", "status": "True"},
            {
                "type": "Ready",
                "status": "True",
                "lastHeartbeatTime": None,
                "lastTransitionTime": None,
            },
        ),
    ],
)
def test_an_object_says_what_is_always_said_and_nothing_empty(
    type_: str, said: dict[str, Any], kept: dict[str, Any]
) -> None:
    check_object(said, require_type(type_), Report([]))
    assert said == kept


def test_what_is_always_said_is_not_shared_between_objects() -> None:
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    for obj in (one, other):
        check_object(obj, require_type("core.Node"), Report([]))
    one["status"]["nodeInfo"]["machineID"] = "m"
    assert other["status"]["nodeInfo"]["machineID"] == ""


def test_inside_every_field_has_its_name_in_go_and_its_place() -> None:
    driver = {"name": "d", "nodeID": "n", "allocatable": {"count": 0}}
    shown = internal_form(driver, "storage.CSINodeDriver")
    assert list(shown.items()) == [
        ("Name", "d"),
        ("NodeID", "n"),
        ("TopologyKeys", None),
        ("Allocatable", {"Count": 0}),
    ]


def test_inside_the_host_s_namespaces_belong_to_a_pod_s_security_context() -> None:
    shown = internal_form({"containers": None, "hostPID": True}, "core.PodSpec")
    held = ("HostNetwork", "HostPID", "HostIPC", "ShareProcessNamespace")
    assert [shown["SecurityContext"][name] for name in held] == [False, True, False, None]
    assert "HostPID" not in shown


def test_a_difference_is_shown_line_by_line() -> None:
    old = {"accessModes": ["ReadWriteOnce"], "resources": {}, "volumeMode": "Filesystem"}
    new = {**old, "volumeMode": "Block"}
    assert difference(old, new, "core.PersistentVolumeClaimSpec").splitlines() == [
        "@@ -9,7 +9,7 @@",
        "  },",
        '  "VolumeName": "",',
        '  "StorageClassName": null,',
        '- "VolumeMode": "Filesystem",',
        '+ "VolumeMode": "Block",',
        '  "DataSource": null,',
        '  "DataSourceRef": null,',
        '  "VolumeAttributesClassName": null',
    ]


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def part(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    meta = part(1, api_version.encode()) + part(2, kind.encode())
    return protobuf.MAGIC + part(1, meta) + part(2, raw)


def test_protobuf_becomes_the_json_that_it_stands_for() -> None:
    label = part(1, b"app") + part(2, b"web")
    meta = part(1, b"a") + part(11, label) + part(8, part(1, 1_700_000_000))
    quantity = part(1, b"cpu") + part(2, part(1, b"500m"))
    container = part(1, b"main") + part(2, b"img") + part(8, part(2, quantity))
    volume = part(1, b"v") + part(2, part(2, b""))
    spec = part(2, container) + part(1, volume) + part(4, -1)
    body = envelope("v1", "Pod", part(1, meta) + part(2, spec))
    api_version, kind, raw = protobuf.open_envelope(body)
    assert (api_version, kind) == ("v1", "Pod")
    assert protobuf.decode_message(raw, POD) == {
        "metadata": {
            "name": "a",
            "labels": {"app": "web"},
            "creationTimestamp": "2023-11-14T22:13:20Z",
        },
        "spec": {
            "containers": [
                {"name": "main", "image": "img", "resources": {"requests": {"cpu": "500m"}}}
            ],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "terminationGracePeriodSeconds": -1,
        },
    }


@given(st.binary(max_size=80))
def test_no_bytes_confuse_the_protobuf_reader(data: bytes) -> None:
    try:
        protobuf.open_envelope(protobuf.MAGIC + data)
        protobuf.decode_message(data, POD)
    except protobuf.WireError:
        return


def test_what_is_known_to_be_in_order_is_not_looked_at_unless_it_differs_to_the_letter() -> None:
    known: dict[str, Any] = {"spec": {"containers": [{"name": "c", "stdin": True}]}}
    check_object(known, POD, Report([]))
    same = {**known, "spec": {"containers": [{"name": "c", "stdin": True, "resources": {}}]}}
    check_object(same, POD, Report([], known=known), known=known)
    assert same == known
    for other in (1, 1.0, "true"):
        sly: JsonObject = {"spec": {"containers": [{"name": "c", "stdin": other, "resources": {}}]}}
        with pytest.raises(Mismatch):
            check_object(sly, POD, Report([], known=known), known=known)


@pytest.mark.parametrize(
    ("text", "fine", "kept"),
    [
        ("2021-03-04T05:06:07Z", False, "2021-03-04T05:06:07Z"),
        ("2021-03-04T05:06:07.9Z", False, "2021-03-04T05:06:07Z"),
        ("2021-03-04T05:06:07+02:00", False, "2021-03-04T03:06:07Z"),
        ("2021-12-31T05:06:07.000001Z", True, "2021-12-31T05:06:07.000001Z"),
        ("2021-03-04T05:06:07.120000-01:00", True, "2021-03-04T06:06:07.120000Z"),
    ],
)
def test_a_moment_is_written_in_utc(text: str, fine: bool, kept: str) -> None:
    assert times.written(text, fine=fine) == kept


@pytest.mark.parametrize(
    ("text", "fine", "why"),
    [
        ("2021-02-30T05:06:07Z", False, "day"),
        ("2021-03-04T25:06:07Z", False, "hour"),
        ("2021-03-04T05:06:07", False, "2021"),
        ("2021-03-04T05:06:07Z", True, "2021"),
        ("2021-03-04T05:06:07.1234567Z", True, "2021"),
    ],
)
def test_what_is_no_moment_is_refused(text: str, fine: bool, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        times.written(text, fine=fine)
