"""What the server settles on a new pod, whatever its author said."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.strategy import child, items
from bayplan.embedded.apiserver.validation.pods.annotations import APP_ARMOR, annotated_profile
from bayplan.embedded.apiserver.validation.pods.choices import CONTAINERS, containers_of
from bayplan.embedded.apiserver.validation.pods.scheduling import PREFERRED, REQUIRED


def drop_disabled(spec: JsonObject) -> None:
    """Take out what belongs to features that are off by default in Kubernetes."""
    spec.pop("schedulingGroup", None)
    for name in CONTAINERS:
        for container in items(spec, name):
            lifecycle = container.get("lifecycle")
            if lifecycle and lifecycle.pop("stopSignal", None) and not lifecycle:
                del container["lifecycle"]
    for volume in items(spec, "volumes"):
        for source in items(volume.get("projected") or {}, "sources"):
            source.pop("clusterTrustBundle", None)
            source.pop("podCertificate", None)


def merge_label_keys(pod: JsonObject) -> None:
    """Put into selectors what they ask of labels by the values that this pod has."""
    labels = pod["metadata"].get("labels") or {}
    for term in _selecting(pod["spec"]):
        selector = term.get("labelSelector")
        if selector is None:
            continue
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            for key in term.get(field) or ():
                if key in labels:
                    wanted = {"key": key, "operator": operator, "values": [labels[key]]}
                    selector.setdefault("matchExpressions", []).append(wanted)


def _selecting(spec: JsonObject) -> Iterator[JsonObject]:
    affinity = spec.get("affinity") or {}
    for name in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(name) or {}
        for term in terms.get(PREFERRED) or ():
            yield term.get("podAffinityTerm") or {}
        yield from terms.get(REQUIRED) or ()
    yield from spec.get("topologySpreadConstraints") or ()


def settle_app_armor(pod: JsonObject) -> None:
    """Let the field say what an old annotation says."""
    annotations, spec = pod["metadata"].get("annotations") or {}, pod["spec"]
    if (spec.get("os") or {}).get("name") == "windows" or not annotations:
        return
    whole = spec["securityContext"].get("appArmorProfile")
    for container, _ in containers_of(spec, ""):
        profile = annotated_profile(annotations.get(f"{APP_ARMOR}{container.get('name')}"))
        own = (container.get("securityContext") or {}).get("appArmorProfile")
        if profile is not None and own is None and profile != whole:
            child(container, "securityContext")["appArmorProfile"] = profile
