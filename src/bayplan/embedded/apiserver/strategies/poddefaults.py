"""Defaults of pods and pod templates."""

from __future__ import annotations

from functools import lru_cache

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.storage import SOURCES
from bayplan.embedded.apiserver.strategies.strategy import child, fill, items, round_amounts
from bayplan.embedded.apiserver.validation.pods.choices import CONTAINERS
from bayplan.embedded.apiserver.validation.pods.containers import PROBES
from bayplan.embedded.apiserver.validation.pods.resources import shown_total
from bayplan.embedded.apiserver.validation.resources import is_huge_page
from bayplan.kube.imagereferences import DEFAULT_TAG, InvalidReferenceError, parse_image

_READABLE_BY_ALL = 0o644
_HOUR = 3600
_VOLUMES: dict[str, JsonObject] = {
    **{
        name: {"defaultMode": _READABLE_BY_ALL}
        for name in ("secret", "configMap", "downwardAPI", "projected")
    },
    **SOURCES,
}
_OLD_ANNOTATIONS = tuple(
    f"pod.{stage}.kubernetes.io/{name}"
    for stage in ("alpha", "beta")
    for name in ("init-containers", "init-container-statuses")
)
_POD_LEVEL = ("cpu", "memory")


def default_pod_spec(spec: JsonObject) -> None:
    """Set the defaults of a pod's or a template's spec."""
    fill(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
    )
    child(spec, "securityContext")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for name in CONTAINERS:
        for container in items(spec, name):
            _default_container(container)
    for volume in items(spec, "volumes"):
        _default_volume(volume)
    round_amounts(spec.get("overhead"))
    if spec.get("resources"):
        _round_resources(spec["resources"])


def default_pod(pod: JsonObject) -> None:
    """Set the defaults of a pod, also those that a template does not get."""
    spec = child(pod, "spec")
    default_pod_spec(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    _drop_old_annotations(pod["metadata"])
    for name in ("initContainers", "containers"):
        for container in items(spec, name):
            _default_requests(container["resources"])
            if spec.get("hostNetwork"):
                for port in items(container, "ports"):
                    fill(port, hostPort=port.get("containerPort") or 0)
    if spec.get("resources"):
        _default_pod_resources(spec, spec["resources"])
    fill(spec, enableServiceLinks=True)


def _drop_old_annotations(meta: JsonObject) -> None:
    """Remove the annotations that init containers once were."""
    annotations = meta.get("annotations")
    if annotations and any(key in annotations for key in _OLD_ANNOTATIONS):
        kept = {key: value for key, value in annotations.items() if key not in _OLD_ANNOTATIONS}
        meta["annotations"] = kept
        if not kept:
            del meta["annotations"]


def default_pod_addresses(status: JsonObject) -> None:
    """Make podIP the first of podIPs; if they differ, podIP counts."""
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and (not addresses or addresses[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and addresses[0].get("ip"):
        status["podIP"] = addresses[0]["ip"]


def _default_container(container: JsonObject) -> None:
    fill(
        container,
        imagePullPolicy=_pull_policy(container.get("image") or ""),
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    _round_resources(child(container, "resources"))
    for port in items(container, "ports"):
        fill(port, protocol="TCP")
    for name in PROBES:
        if container.get(name) is not None:
            _default_probe(container[name])
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict):
            _default_request(hook)
    for variable in items(container, "env"):
        _default_variable(variable)


@lru_cache(1024)
def _pull_policy(image: str) -> str:
    """Return the pull policy: Always for images without a fixed tag."""
    try:
        tag = parse_image(image).with_default_tag().tag
    except InvalidReferenceError:
        tag = ""
    return "Always" if tag == DEFAULT_TAG else "IfNotPresent"


def _round_resources(resources: JsonObject) -> None:
    round_amounts(resources.get("limits"))
    round_amounts(resources.get("requests"))


def _default_requests(resources: JsonObject) -> None:
    """Set requests to the limits unless they are set."""
    limits = resources.get("limits")
    if limits:
        fill(child(resources, "requests"), **limits)


def _default_pod_resources(spec: JsonObject, resources: JsonObject) -> None:
    """Set pod-level requests from the containers' requests or the pod-level limits."""
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    if not requests and not limits:
        return
    for name, amount in shown_total(spec, "limits").items():
        if is_huge_page(name) and name not in requests:
            limits.setdefault(name, amount)
    if limits:
        resources["limits"] = limits
        for name, amount in shown_total(spec, "requests").items():
            if name in _POD_LEVEL:
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if name in _POD_LEVEL or is_huge_page(name):
                requests.setdefault(name, amount)
    if requests:
        resources["requests"] = requests


def _default_request(handler: JsonObject) -> None:
    if handler.get("httpGet") is not None:
        fill(handler["httpGet"], path="/", scheme="HTTP")


def _default_probe(probe: JsonObject) -> None:
    fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    _default_request(probe)
    if probe.get("grpc") is not None:
        fill(probe["grpc"], service="")


def _default_variable(variable: JsonObject) -> None:
    source = variable.get("valueFrom") or {}
    if source.get("fieldRef") is not None:
        fill(source["fieldRef"], apiVersion="v1")
    if source.get("fileKeyRef") is not None:
        fill(source["fileKeyRef"], optional=False)


def _default_volume(volume: JsonObject) -> None:
    kinds = [name for name in volume if name != "name"]
    if not kinds:
        volume["emptyDir"] = {}
    for kind in kinds:
        if kind in _VOLUMES:
            fill(volume[kind], **_VOLUMES[kind])
    for source in [volume, *items(volume.get("projected") or {}, "sources")]:
        for file in items(source.get("downwardAPI") or {}, "items"):
            if file.get("fieldRef") is not None:
                fill(file["fieldRef"], apiVersion="v1")
        if source.get("serviceAccountToken") is not None:
            fill(source["serviceAccountToken"], expirationSeconds=_HOUR)
    if volume.get("image") is not None:
        fill(volume["image"], pullPolicy=_pull_policy(volume["image"].get("reference") or ""))
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        claim = child(template, "spec")
        fill(claim, volumeMode="Filesystem")
        _round_resources(child(claim, "resources"))
