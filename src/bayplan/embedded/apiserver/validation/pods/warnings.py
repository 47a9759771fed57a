"""Warnings about pods and templates.

They include files of one volume whose paths conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.addresses import address_warnings
from bayplan.embedded.apiserver.validation.causes import quoted
from bayplan.embedded.apiserver.validation.claims import claim_spec_warnings
from bayplan.embedded.apiserver.validation.names import dns_label, label_value
from bayplan.embedded.apiserver.validation.numbers import is_fraction, repeats
from bayplan.embedded.apiserver.validation.pods.annotations import (
    APP_ARMOR,
    SECCOMP,
    SECCOMP_OF_CONTAINER,
    annotated_profile,
)
from bayplan.embedded.apiserver.validation.pods.choices import containers_of
from bayplan.embedded.apiserver.validation.pods.scheduling import PREFERRED, REQUIRED
from bayplan.embedded.apiserver.validation.selectors import (
    expression_deprecations,
    label_deprecation,
)

_OVER = "overlapping paths"
_COMPARED_PATHS = 256
"""Limit of files of a volume that are compared with each other."""


class _File(NamedTuple):
    path: str
    source: str

    def __str__(self) -> str:
        return f"{quoted(self.path)} ({self.source})" if self.source else quoted(self.path)


def overlap_warnings(volumes: list[JsonObject]) -> list[str]:
    """Return the warnings about volumes whose files overlap."""
    found: list[str] = []
    for volume in volumes:
        name = quoted(volume.get("name") or "")
        for kind, what in _described(volume).items():
            files = _files(volume[kind], "")
            found += [
                f"volume {name} ({what}): overlapping paths: {one}" for one in _clashes(files)
            ]
        if volume.get("projected") is not None:
            found += _projected(volume["projected"].get("sources") or [], name)
    return found


def _described(volume: JsonObject) -> dict[str, str]:
    """Return the files of a volume by name, and how it is called."""
    found = {}
    if (source := volume.get("configMap")) is not None:
        found["configMap"] = f"ConfigMap {quoted(source.get('name') or '')}"
    if (source := volume.get("secret")) is not None:
        found["secret"] = f"Secret {quoted(source.get('secretName') or source.get('name') or '')}"
    return found | {"downwardAPI": "DownwardAPI"} if volume.get("downwardAPI") else found


def _files(source: JsonObject, what: str) -> list[_File]:
    return [_File(item.get("path") or "", what) for item in source.get("items") or ()]


def _projected(sources: list[JsonObject], name: str) -> list[str]:
    files: list[_File] = []
    found = []
    for source in sources:
        if not source:
            found.append(f"volume {name} (Projected) has no sources provided")
            continue
        kinds = _described(source)
        listed = next((kind for kind in kinds if source[kind].get("items")), "")
        if listed:
            files += _files(source[listed], kinds[listed])
        elif source.get("serviceAccountToken") is not None:
            path = source["serviceAccountToken"].get("path") or ""
            files.append(_File(path, "ServiceAccountToken"))
    clashes = _clashes(files)
    return found + [f"volume {name} (Projected): {_OVER}: {one}" for one in clashes]


def _clashes(files: list[_File]) -> list[str]:
    seen: list[_File] = []
    found = []
    for file in files[:_COMPARED_PATHS]:
        one = file._replace(path=file.path.rstrip("/"))
        found += [f"{one} with {other}" for other in seen if _overlap(one, other)]
        seen.append(one)
    return found


def _overlap(one: _File, other: _File) -> bool:
    if not one.path or not other.path:
        return False
    inner, outer = f"{one.path}/", f"{other.path}/"
    return inner.startswith(outer) or outer.startswith(inner)


_NOBODY = "a null labelSelector results in matching no pod"
_OLD_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
    "security.alpha.kubernetes.io/unsafe-sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
}
_OLD_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_APP_ARMOR = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_BYTES = ("memory", "ephemeral-storage")


def name_warnings(pod: JsonObject) -> list[str]:
    """Return the warnings about a pod's name and deprecated annotations."""
    meta = pod["metadata"]
    annotations = meta.get("annotations") or {}
    found = _armor_warnings(pod["spec"], annotations) if annotations else []
    wrong = dns_label(meta.get("name") or "")
    if not wrong:
        return found
    advice = (
        "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label "
        f"is recommended: [{' '.join(wrong)}]"
    )
    return [*found, f"metadata.name: {advice}"]


def _armor_warnings(spec: JsonObject, annotations: JsonObject) -> list[str]:
    """Return the warnings about AppArmor annotations."""
    if (spec.get("os") or {}).get("name") == "windows":
        return []
    found = []
    for one, _ in containers_of(spec, ""):
        key = f"{APP_ARMOR}{one.get('name')}"
        own = (one.get("securityContext") or {}).get("appArmorProfile")
        if key in annotations and own in (None, annotated_profile(annotations[key])):
            found.append(f"metadata.annotations[{key}]: {_APP_ARMOR}")
    return found


def template_warnings(template: JsonObject, at: str) -> list[str]:
    """Return the warnings about a pod template."""
    spec, meta = template.get("spec") or {}, template.get("metadata") or {}
    found = spec_warnings(spec, meta, at)
    annotations = meta.get("annotations") or {}
    whole = (spec.get("securityContext") or {}).get("appArmorProfile")
    for one, _ in containers_of(spec, ""):
        key = f"{APP_ARMOR}{one.get('name')}"
        own = (one.get("securityContext") or {}).get("appArmorProfile")
        same = whole is not None and whole == annotated_profile(annotations.get(key))
        if key in annotations and own is None and not same:
            found.append(f"{at}.metadata.annotations[{key}]: {_APP_ARMOR}")
    return found


def spec_warnings(spec: JsonObject, meta: JsonObject, base: str = "") -> list[str]:
    """Return the warnings about a spec and its metadata below `base`."""
    inside = f"{base}." if base else ""
    at, annotations = f"{inside}spec", meta.get("annotations") or {}
    found = [*_label_warnings(spec, at), *_spread_warnings(spec, at)]
    for key, message in _OLD_ANNOTATIONS.items():
        if key in annotations:
            found.append(f"{inside}metadata.annotations[{key}]: {message}")
    found += _volume_warnings(spec, at)
    found += overlap_warnings(spec.get("volumes") or [])
    found += _list_warnings(spec, at)
    found += _fraction_warnings(spec.get("overhead"), f"{at}.overhead")
    found += _profile_warnings(spec, annotations, f"{inside}metadata.annotations")
    for container, place in containers_of(spec, at):
        found += _container_warnings(container, place)
    found += _port_warnings(spec, at)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        detail = "must be >= 0; negative values are invalid and will be treated as 1"
        found.append(f"{at}.terminationGracePeriodSeconds: {detail}")
    return [*found, *_affinity_warnings(spec, at), *_address_warnings(spec, at)]


def _label_warnings(spec: JsonObject, at: str) -> Iterator[str]:
    for key in spec.get("nodeSelector") or {}:
        if message := label_deprecation(key):
            yield f"{at}.nodeSelector[{key}]: {message}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    place = f"{at}.affinity.nodeAffinity"
    for index, term in enumerate((affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        field = f"{place}.{REQUIRED}.nodeSelectorTerms[{index}].matchExpressions"
        yield from expression_deprecations(term.get("matchExpressions"), field)
    for index, term in enumerate(affinity.get(PREFERRED) or ()):
        field = f"{place}.{PREFERRED}[{index}].preference.matchExpressions"
        wanted = (term.get("preference") or {}).get("matchExpressions") or []
        yield from expression_deprecations(wanted, field)
        for number, one in enumerate(wanted):
            for where, value in enumerate(one.get("values") or ()):
                for detail in label_value(value):
                    yield f"{field}[{number}].values[{where}]: {value} is invalid, {detail}"


def _spread_warnings(spec: JsonObject, at: str) -> Iterator[str]:
    for index, one in enumerate(spec.get("topologySpreadConstraints") or ()):
        place, key = f"{at}.topologySpreadConstraints[{index}]", one.get("topologyKey") or ""
        if message := label_deprecation(key):
            yield f"{place}.topologyKey: {key} is {message}"
        if one.get("labelSelector") is None:
            yield f"{place}.labelSelector: {_NOBODY}"


def _volume_warnings(spec: JsonObject, at: str) -> list[str]:
    found: list[str] = []
    for index, volume in enumerate(spec.get("volumes") or ()):
        place = f"{at}.volumes[{index}]"
        for kind, message in _OLD_VOLUMES.items():
            if volume.get(kind) is not None:
                shown = "storageOS" if kind == "storageos" else kind
                found.append(f"{place}.{shown}: {message}")
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template is not None:
            field = f"{place}.ephemeral.volumeClaimTemplate.spec"
            found += claim_spec_warnings(template.get("spec") or {}, field)
    return found


def _list_warnings(spec: JsonObject, at: str) -> list[str]:
    aliases = [one.get("ip") or "" for one in spec.get("hostAliases") or ()]
    secrets = [one.get("name") or "" for one in spec.get("imagePullSecrets") or ()]
    found = [
        f"{at}.hostAliases[{index}].ip: duplicate ip {quoted(aliases[index])}"
        for index in repeats(aliases)
    ]
    place = f"{at}.imagePullSecrets"
    found += [
        f"{place}[{index}].name: duplicate name {quoted(secrets[index])}"
        for index in repeats(secrets)
    ]
    return found + [
        f'{place}[{index}].name: invalid empty name ""'
        for index, name in enumerate(secrets)
        if not name
    ]


def _fraction_warnings(amounts: JsonObject | None, at: str) -> list[str]:
    return [
        f"{at}[{name}]: fractional byte value {quoted((amounts or {})[name])} is invalid, must be "
        "an integer"
        for name in _BYTES
        if is_fraction(amounts, name)
    ]


def _profile_warnings(spec: JsonObject, annotations: JsonObject, at: str) -> list[str]:
    if not annotations:
        return []
    owners = [(SECCOMP, spec)]
    containers = containers_of(spec, "")
    owners += [(f"{SECCOMP_OF_CONTAINER}{one.get('name')}", one) for one, _ in containers]
    return [
        f"{at}[{key}]: {_SECCOMP}"
        for key, owner in owners
        if key in annotations and (owner.get("securityContext") or {}).get("seccompProfile") is None
    ]


def _container_warnings(container: JsonObject, at: str) -> list[str]:
    resources = container.get("resources") or {}
    found = []
    for name in _BYTES:
        for kind in ("limits", "requests"):
            one = {key: value for key, value in (resources.get(kind) or {}).items() if key == name}
            found += _fraction_warnings(one, f"{at}.resources.{kind}")
    seen: set[str] = set()
    for index, variable in enumerate(container.get("env") or ()):
        name = variable.get("name") or ""
        if name in seen and _hides(variable, f"$({name})"):
            detail = f"hides previous definition of {quoted(name)}"
            found.append(f"{at}.env[{index}]: {detail}, which may be dropped when using apply")
        seen.add(name)
    return found


def _hides(variable: JsonObject, reference: str) -> bool:
    value = variable.get("value") or ""
    return variable.get("valueFrom") is not None or value == reference or reference not in value


_COMPARED = 8
"""Limit of ports of one number that are compared with each other."""


class _Port(NamedTuple):
    at: str
    host_ip: str
    host_port: int


def _port_warnings(spec: JsonObject, at: str) -> list[str]:
    found: list[str] = []
    known: dict[tuple[int, str], list[_Port]] = {}
    names: list[tuple[str, str]] = []
    for container, place in containers_of(spec, at):
        for index, port in enumerate(container.get("ports") or ()):
            one = _Port(
                f"{place}.ports[{index}]", port.get("hostIP") or "", port.get("hostPort") or 0
            )
            if one.host_ip and not one.host_port:
                found.append(f"{one.at}: hostIP set without hostPort: {_shown_port(port)}")
            key = (port.get("containerPort") or 0, port.get("protocol") or "")
            same = known.setdefault(key, [])
            found += [text for other in same if (text := _clash(one, other))]
            if len(same) < _COMPARED:
                same.append(one)
            names.append((port.get("name") or "", one.at))
    return found + _name_warnings(names)


def _shown_port(port: JsonObject) -> str:
    """Return a port as Go prints a struct."""
    fields = {"Name": "name", "HostPort": "hostPort", "ContainerPort": "containerPort"}
    fields |= {"Protocol": "protocol", "HostIP": "hostIP"}
    zeros = {"HostPort": 0, "ContainerPort": 0}
    fields_shown = [f"{go}:{port.get(name) or zeros.get(go, '')}" for go, name in fields.items()]
    return "{" + " ".join(fields_shown) + "}"


def _clash(one: _Port, other: _Port) -> str:
    if one[1:] == other[1:]:
        return f"{one.at}: duplicate port definition with {other.at}"
    if not one.host_port or not other.host_port:
        return f"{one.at}: overlapping port definition with {other.at}"
    if one.host_port == other.host_port and bool(one.host_ip) != bool(other.host_ip):
        return f"{one.at}: dangerously ambiguous port definition with {other.at}"
    return ""


def _name_warnings(names: list[tuple[str, str]]) -> list[str]:
    first: dict[str, str] = {}
    found = []
    for name, at in names:
        if name and name in first:
            other = first[name]
            detail = f"duplicate port name {quoted(name)} with {other}"
            uses = f"services and probes that select ports by name will use {other}"
            found.append(f"{at}: {detail}, {uses}")
        first.setdefault(name, at)
    return found


def _affinity_warnings(spec: JsonObject, at: str) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = (spec.get("affinity") or {}).get(kind) or {}
        for index, term in enumerate(terms.get(REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{at}.affinity.{kind}.{REQUIRED}[{index}].labelSelector: {_NOBODY}"
        for index, term in enumerate(terms.get(PREFERRED) or ()):
            if (term.get("podAffinityTerm") or {}).get("labelSelector") is None:
                place = f"{at}.affinity.{kind}.{PREFERRED}[{index}]"
                yield f"{place}.podAffinityTerm.labelSelector: {_NOBODY}"


def _address_warnings(spec: JsonObject, at: str) -> Iterator[str]:
    for index, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        yield from address_warnings(server, f"{at}.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from address_warnings(alias.get("ip") or "", f"{at}.hostAliases[{index}].ip")
