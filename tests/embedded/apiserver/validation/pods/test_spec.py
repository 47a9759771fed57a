"""What a pod may say of itself: each rule by the field and the reason that a refusal names."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.embedded.apiserver.strategies.poddefaults import default_pod
from bayplan.embedded.apiserver.validation.pods.spec import new_pod_problems, pod_spec_problems

Json = dict[str, Any]
INVALID, REQUIRED, FORBIDDEN = "Invalid", "Required", "Forbidden"
UNSUPPORTED, DUPLICATE, MISSING = "NotSupported", "Duplicate", "NotFound"
NEAR = "requiredDuringSchedulingIgnoredDuringExecution"
MAYBE = "preferredDuringSchedulingIgnoredDuringExecution"


def container(**fields: Any) -> Json:
    return {"name": "c", "image": "busybox:1", **fields}


def with_container(**fields: Any) -> Json:
    return {"containers": [container(**fields)]}


def with_spec(**fields: Any) -> Json:
    return {"containers": [container()], **fields}


def with_volume(**source: Any) -> Json:
    return with_spec(volumes=[{"name": "v", **source}])


def asks(limits: Json | None = None, **requests: str) -> Json:
    return with_container(resources={"requests": requests, "limits": limits or {}})


def spread(**fields: Any) -> Json:
    usual = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {**usual, "labelSelector": {}, **fields}


def near_pods(**term: Any) -> Json:
    terms = [{"topologyKey": "zone", "labelSelector": {}, **term}]
    return with_spec(affinity={"podAffinity": {NEAR: terms}})


def on_nodes(*requirements: Json, kind: str = "matchExpressions") -> Json:
    chosen = {"nodeSelectorTerms": [{kind: list(requirements)}]}
    return with_spec(affinity={"nodeAffinity": {NEAR: chosen}})


def problems(spec: Json) -> set[tuple[str, str]]:
    pod = {"metadata": {"name": "p"}, "spec": spec}
    default_pod(pod)
    found = [*pod_spec_problems(spec, "spec", "p"), *new_pod_problems(spec, "spec")]
    return {(one.field.removeprefix("spec."), one.reason[len("FieldValue") :]) for one in found}


FIRST = "containers[0]"
ONE_FILE = {"configMap": {"name": "m", "items": [{"key": "k", "path": "p"}]}}
VOLUME = "volumes[0]"
AFFINITY = f"affinity.podAffinity.{NEAR}[0]"
NODES = f"affinity.nodeAffinity.{NEAR}.nodeSelectorTerms"
SPREAD = "topologySpreadConstraints[0]"

REFUSED: dict[str, tuple[Json, set[tuple[str, str]]]] = {
    "no containers": ({}, {("containers", REQUIRED)}),
    "two containers of a name": (
        {"containers": [container(), container()]},
        {("containers[1].name", DUPLICATE)},
    ),
    "a name that is no label": (with_container(name="A_"), {(f"{FIRST}.name", INVALID)}),
    "an image with spaces around": (with_container(image=" a "), {(f"{FIRST}.image", INVALID)}),
    "an unknown pull policy": (
        with_container(imagePullPolicy="Maybe"),
        {(f"{FIRST}.imagePullPolicy", UNSUPPORTED)},
    ),
    "a port out of range": (
        with_container(ports=[{"containerPort": 70000}]),
        {(f"{FIRST}.ports[0].containerPort", INVALID)},
    ),
    "a port's name that is too long": (
        with_container(ports=[{"containerPort": 1, "name": "a-name-of-a-port"}]),
        {(f"{FIRST}.ports[0].name", INVALID)},
    ),
    "one host port for two": (
        with_container(ports=[{"containerPort": 1, "hostPort": 5}] * 2),
        {(f"{FIRST}.ports[1].hostPort", DUPLICATE)},
    ),
    "another host port on the host's network": (
        {**with_container(ports=[{"containerPort": 1, "hostPort": 5}]), "hostNetwork": True},
        {(f"{FIRST}.ports[0].hostPort", INVALID)},
    ),
    "a variable of two sources": (
        with_container(
            env=[
                {
                    "name": "A",
                    "valueFrom": {
                        "fieldRef": {"fieldPath": "metadata.name"},
                        "secretKeyRef": {"name": "s", "key": "k"},
                    },
                }
            ]
        ),
        {(f"{FIRST}.env[0].valueFrom", INVALID)},
    ),
    "a field that variables cannot show": (
        with_container(
            env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}]
        ),
        {(f"{FIRST}.env[0].valueFrom.fieldRef.fieldPath", UNSUPPORTED)},
    ),
    "a divisor that is none": (
        with_container(
            env=[
                {
                    "name": "A",
                    "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}},
                }
            ]
        ),
        {(f"{FIRST}.env[0].valueFrom.resourceFieldRef.divisor", INVALID)},
    ),
    "variables from nowhere": (with_container(envFrom=[{}]), {(f"{FIRST}.envFrom", INVALID)}),
    "a mount of no volume": (
        with_container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        {(f"{FIRST}.volumeMounts[0].name", MISSING)},
    ),
    "a probe of two kinds": (
        with_container(livenessProbe={"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}}),
        {(f"{FIRST}.livenessProbe.tcpSocket", FORBIDDEN)},
    ),
    "a liveness probe that must succeed twice": (
        with_container(livenessProbe={"tcpSocket": {"port": 1}, "successThreshold": 2}),
        {(f"{FIRST}.livenessProbe.successThreshold", INVALID)},
    ),
    "a hook that sleeps beyond the end": (
        with_container(lifecycle={"preStop": {"sleep": {"seconds": 31}}}),
        {(f"{FIRST}.lifecycle.preStop.sleep", INVALID)},
    ),
    "a hook on a container that ends": (
        with_spec(initContainers=[container(name="i", lifecycle={"preStop": {"sleep": {}}})]),
        {("initContainers[0].lifecycle", FORBIDDEN)},
    ),
    "restart rules without a policy": (
        with_container(
            restartPolicyRules=[
                {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}
            ]
        ),
        {(f"{FIRST}.restartPolicy", REQUIRED)},
    ),
    "a privileged container": (
        with_container(securityContext={"privileged": True}),
        {(f"{FIRST}.securityContext.privileged", FORBIDDEN)},
    ),
    "a user that is no number of a user": (
        with_spec(securityContext={"runAsUser": -1}),
        {("securityContext.runAsUser", INVALID)},
    ),
    "sysctls of the host's network": (
        with_spec(hostNetwork=True, securityContext={"sysctls": [{"name": "net.a", "value": "1"}]}),
        {("securityContext.sysctls[0].name", INVALID)},
    ),
    "windows options on linux": (
        with_spec(os={"name": "linux"}, securityContext={"windowsOptions": {}}),
        {("securityContext.windowsOptions", FORBIDDEN)},
    ),
    "linux options on windows": (
        with_spec(os={"name": "windows"}, hostPID=True),
        {("hostPID", FORBIDDEN)},
    ),
    "own users and the host's processes": (
        with_spec(hostUsers=False, hostPID=True),
        {("HostPID", FORBIDDEN)},
    ),
    "more asked than allowed": (
        asks({"cpu": "1"}, cpu="2"),
        {(f"{FIRST}.resources.requests", INVALID)},
    ),
    "an extended resource without a limit": (
        asks(None, **{"example.com/gpu": "1"}),
        {(f"{FIRST}.resources.limits", REQUIRED)},
    ),
    "half an extended resource": (
        asks({"example.com/gpu": "500m"}),
        {
            (f"{FIRST}.resources.limits[example.com/gpu]", INVALID),
            (f"{FIRST}.resources.requests[example.com/gpu]", INVALID),
        },
    ),
    "a resource that nobody knows": (
        asks(None, gpu="1"),
        {(f"{FIRST}.resources.requests[gpu]", INVALID)},
    ),
    "an attach limit": (
        asks(None, **{"attachable-volumes-csi-x": "1"}),
        {(f"{FIRST}.resources.requests[attachable-volumes-csi-x]", INVALID)},
    ),
    "a new attach limit": (
        asks(None, **{"storage-attach-limits-x": "1"}),
        {(f"{FIRST}.resources.requests[storage-attach-limits-x]", INVALID)},
    ),
    "huge pages alone": (
        asks({"hugepages-2Mi": "4Mi"}),
        {(f"{FIRST}.resources", FORBIDDEN)},
    ),
    "half a huge page": (
        asks({"hugepages-2Mi": "3Mi", "cpu": "1"}),
        {
            (f"{FIRST}.resources.limits[hugepages-2Mi]", INVALID),
            (f"{FIRST}.resources.requests[hugepages-2Mi]", INVALID),
        },
    ),
    "a claim that the pod does not have": (
        with_container(resources={"claims": [{"name": "x"}]}),
        {(f"{FIRST}.resources.claims[0]", MISSING)},
    ),
    "a pod that asks for less than its containers": (
        {**asks(None, cpu="2"), "resources": {"requests": {"cpu": "1"}}},
        {("resources.requests[cpu]", INVALID)},
    ),
    "negative overhead": (with_spec(overhead={"cpu": "-1"}), {("overhead.limits[cpu]", INVALID)}),
    "two kinds of volume in one": (
        with_volume(emptyDir={}, hostPath={"path": "/a"}),
        {(f"{VOLUME}.hostPath", FORBIDDEN)},
    ),
    "a host's path that goes up": (
        with_volume(hostPath={"path": "/a/../b"}),
        {(f"{VOLUME}.hostPath.path", INVALID)},
    ),
    "a claim without a name": (
        with_volume(persistentVolumeClaim={}),
        {(f"{VOLUME}.persistentVolumeClaim.claimName", REQUIRED)},
    ),
    "a secret without a name": (
        with_volume(secret={}),
        {(f"{VOLUME}.secret.secretName", REQUIRED)},
    ),
    "a CSI volume without a driver": (with_volume(csi={}), {(f"{VOLUME}.csi.driver", REQUIRED)}),
    "a template without access modes": (
        with_volume(
            ephemeral={
                "volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}
            }
        ),
        {(f"{VOLUME}.ephemeral.volumeClaimTemplate.spec.accessModes", REQUIRED)},
    ),
    "two files at one path": (
        with_volume(projected={"sources": [ONE_FILE, ONE_FILE]}),
        {(f"{VOLUME}.projected", INVALID)},
    ),
    "a selector term of no terms": (
        with_spec(affinity={"nodeAffinity": {NEAR: {"nodeSelectorTerms": []}}}),
        {(NODES, REQUIRED)},
    ),
    "In without values": (
        on_nodes({"key": "a", "operator": "In"}),
        {(f"{NODES}[0].matchExpressions[0].values", REQUIRED)},
    ),
    "Exists with values": (
        on_nodes({"key": "a", "operator": "Exists", "values": ["b"]}),
        {(f"{NODES}[0].matchExpressions[0].values", FORBIDDEN)},
    ),
    "Gt with two values": (
        on_nodes({"key": "a", "operator": "Gt", "values": ["1", "2"]}),
        {(f"{NODES}[0].matchExpressions[0].values", REQUIRED)},
    ),
    "an unknown operator": (
        on_nodes({"key": "a", "operator": "Near"}),
        {(f"{NODES}[0].matchExpressions[0].operator", INVALID)},
    ),
    "a field of nodes that is none": (
        on_nodes({"key": "metadata.uid", "operator": "In", "values": ["a"]}, kind="matchFields"),
        {(f"{NODES}[0].matchFields[0].key", INVALID)},
    ),
    "a weight of nothing": (
        with_spec(affinity={"nodeAffinity": {MAYBE: [{"weight": 0, "preference": {}}]}}),
        {(f"affinity.nodeAffinity.{MAYBE}[0].weight", INVALID)},
    ),
    "no topology": (
        near_pods(topologyKey=""),
        {(f"{AFFINITY}.topologyKey", REQUIRED), (f"{AFFINITY}.topologyKey", INVALID)},
    ),
    "label keys without a selector": (
        near_pods(labelSelector=None, matchLabelKeys=["a"]),
        {(f"{AFFINITY}.matchLabelKeys", FORBIDDEN)},
    ),
    "a label key on both sides": (
        near_pods(matchLabelKeys=["a"], mismatchLabelKeys=["a"]),
        {(f"{AFFINITY}.matchLabelKeys[0]", INVALID)},
    ),
    "no skew": (
        with_spec(topologySpreadConstraints=[spread(maxSkew=0)]),
        {(f"{SPREAD}.maxSkew", INVALID)},
    ),
    "one constraint twice": (
        with_spec(topologySpreadConstraints=[spread(), spread(maxSkew=2)]),
        {(f"{SPREAD}.{{topologyKey, whenUnsatisfiable}}", DUPLICATE)},
    ),
    "a minimum of domains that binds nobody": (
        with_spec(
            topologySpreadConstraints=[spread(minDomains=1, whenUnsatisfiable="ScheduleAnyway")]
        ),
        {(f"{SPREAD}.minDomains", INVALID)},
    ),
    "a toleration of everything by value": (
        with_spec(tolerations=[{"operator": "Equal", "value": "a"}]),
        {("tolerations[0].operator", INVALID)},
    ),
    "seconds for another effect": (
        with_spec(tolerations=[{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1}]),
        {("tolerations[0].effect", INVALID)},
    ),
    "comparing tolerations, which are not on yet": (
        with_spec(tolerations=[{"key": "a", "operator": "Gt", "value": "1"}]),
        {("tolerations[0].operator", UNSUPPORTED)},
    ),
    "one gate twice": (
        with_spec(schedulingGates=[{"name": "a"}, {"name": "a"}]),
        {("schedulingGates[1]", DUPLICATE)},
    ),
    "a readiness gate without a name": (
        with_spec(readinessGates=[{}]),
        {("readinessGates[0].conditionType", INVALID)},
    ),
    "own DNS without servers": (with_spec(dnsPolicy="None"), {("dnsConfig", REQUIRED)}),
    "an alias that is no address": (
        with_spec(hostAliases=[{"ip": "10.0.0.300"}]),
        {("hostAliases[0].ip", INVALID)},
    ),
    "a resource claim from two places": (
        with_spec(
            resourceClaims=[
                {"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "c"}
            ]
        ),
        {("resourceClaims[0]", INVALID)},
    ),
    "a deadline of never": (
        with_spec(activeDeadlineSeconds=0),
        {("activeDeadlineSeconds", INVALID)},
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_pod_is_refused_for(name: str) -> None:
    spec, expected = REFUSED[name]
    assert problems(spec) == expected


def test_a_rich_pod_is_in_order() -> None:
    probe = {"httpGet": {"port": "http", "httpHeaders": [{"name": "X-A", "value": "b"}]}}
    spec = {
        "containers": [
            container(
                ports=[{"containerPort": 80, "name": "http", "hostPort": 80}],
                env=[
                    {"name": "any thing", "value": "b"},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}},
                ],
                volumeMounts=[{"name": "v", "mountPath": "/v", "subPath": "a/b"}],
                volumeDevices=[{"name": "d", "devicePath": "/dev/d"}],
                livenessProbe=probe,
                lifecycle={"preStop": {"sleep": {"seconds": 5}}},
                resources={"limits": {"example.com/gpu": "2", "hugepages-2Mi": "4Mi", "cpu": "1"}},
            )
        ],
        "initContainers": [container(name="sidecar", restartPolicy="Always", startupProbe=probe)],
        "volumes": [{"name": "v"}, {"name": "d", "persistentVolumeClaim": {"claimName": "c"}}],
        "tolerations": [{"operator": "Exists"}],
        "topologySpreadConstraints": [spread(), spread(whenUnsatisfiable="ScheduleAnyway")],
        "affinity": near_pods(matchLabelKeys=["a"])["affinity"],
    }
    assert problems(spec) == set()


def test_a_template_is_not_asked_for_what_only_pods_are() -> None:
    spec = {**with_container(ports=[{"containerPort": 80}]), "hostNetwork": True}
    pod = {"metadata": {}, "spec": spec}
    default_pod(pod)
    del spec["containers"][0]["ports"][0]["hostPort"]
    assert pod_spec_problems(spec, "spec.template.spec") == []
    assert [one.field for one in pod_spec_problems(spec, "spec", "p")] == [
        "spec.containers[0].ports[0].hostPort"
    ]
