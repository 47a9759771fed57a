"""What a pod's spec must be, so that nothing that reads it later has to wonder."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.strategies.strategy import items
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    not_supported,
    required,
)
from bayplan.embedded.apiserver.validation.names import (
    dns_label,
    label_problems,
    name_problems,
    qualified_name,
)
from bayplan.kube.names import is_qualified_name
from bayplan.kube.quantity import parse as amount
from bayplan.kube.resources import is_attach_limit

_NATIVE = frozenset(("cpu", "memory", "ephemeral-storage"))
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS = ("Exists", "Equal", "Lt", "Gt")


def spec_problems(spec: JsonObject, where: str) -> list[Cause]:
    """What is wrong with a pod's spec."""
    return [
        *_container_list_problems(spec, where),
        *_volume_problems(spec, where),
        *_gate_problems(spec, where),
        *_toleration_problems(spec, where),
        *_spread_problems(spec, where),
        *_affinity_problems(spec, where),
        *label_problems(spec.get("nodeSelector") or {}, f"{where}.nodeSelector"),
        *_choice(spec, "restartPolicy", ("Always", "OnFailure", "Never"), where),
        *_choice(
            spec, "dnsPolicy", ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"), where
        ),
    ]


def _choice(obj: JsonObject, name: str, choices: tuple[str, ...], where: str) -> list[Cause]:
    value = obj.get(name)
    if value is None or value in choices:
        return []
    return [not_supported(f"{where}.{name}", value, choices)]


def _container_list_problems(spec: JsonObject, where: str) -> list[Cause]:
    if not spec.get("containers"):
        return [required(f"{where}.containers")]
    volumes = {volume.get("name") for volume in items(spec, "volumes")}
    found: list[Cause] = []
    names: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(items(spec, field)):
            place = f"{where}.{field}[{index}]"
            found += _container_problems(container, place, volumes)
            name = container.get("name") or ""
            if name in names:
                found.append(duplicate(f"{place}.name", name))
            names.add(name)
    return found


def _container_problems(container: JsonObject, place: str, volumes: set[str | None]) -> list[Cause]:
    found: list[Cause] = []
    name = container.get("name") or ""
    if not name:
        found.append(required(f"{place}.name"))
    else:
        found += name_problems(dns_label, name, f"{place}.name")
    if not container.get("image"):
        found.append(required(f"{place}.image"))
    for index, mount in enumerate(items(container, "volumeMounts")):
        if mount.get("name") not in volumes:
            field = f"{place}.volumeMounts[{index}].name"
            shown = f'Not found: "{mount.get("name", "")}"'
            found.append(Cause("FieldValueNotFound", shown, field))
    found += _port_problems(container, place)
    found += resource_problems(container.get("resources") or {}, f"{place}.resources")
    return found


def _port_problems(container: JsonObject, place: str) -> list[Cause]:
    found = []
    for index, port in enumerate(items(container, "ports")):
        number = port.get("containerPort") or 0
        if not 0 < number < 65536:
            field = f"{place}.ports[{index}].containerPort"
            found.append(bad_value(field, number, "must be between 1 and 65535, inclusive"))
    return found


def resource_problems(resources: JsonObject, place: str) -> list[Cause]:
    """What is wrong with requests and limits."""
    found: list[Cause] = []
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            found += _amount_problems(name, value, f"{place}.{field}[{name}]")
    for name in requests.keys() & limits.keys():
        if amount(requests[name]) > amount(limits[name]):
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            found.append(bad_value(f"{place}.requests", requests[name], why))
    return found


def _amount_problems(name: str, value: str, field: str) -> list[Cause]:
    if is_attach_limit(name):
        why = "must not ask for a node's attach limit: volumes are counted from the pod's claims"
        return [bad_value(field, name, why)]
    known = name in _NATIVE or name.startswith("hugepages-") or "/" in name
    if not known or not is_qualified_name(name):
        return [bad_value(field, name, "must be a standard resource type or fully qualified")]
    if amount(value) < 0:
        return [bad_value(field, value, "must be greater than or equal to 0")]
    return []


def _volume_problems(spec: JsonObject, where: str) -> list[Cause]:
    found: list[Cause] = []
    names: set[str] = set()
    for index, volume in enumerate(items(spec, "volumes")):
        place = f"{where}.volumes[{index}]"
        name = volume.get("name") or ""
        if not name:
            found.append(required(f"{place}.name"))
        else:
            found += name_problems(dns_label, name, f"{place}.name")
        if name and name in names:
            found.append(duplicate(f"{place}.name", name))
        if len(set(volume) - {"name"}) > 1:
            found.append(forbidden_field(place, "may not specify more than 1 volume type"))
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            found.append(required(f"{place}.persistentVolumeClaim.claimName"))
        names.add(name)
    return found


def _gate_problems(spec: JsonObject, where: str) -> list[Cause]:
    gates = [gate.get("name") or "" for gate in items(spec, "schedulingGates")]
    found = []
    for index, name in enumerate(gates):
        place = f"{where}.schedulingGates[{index}]"
        found += name_problems(qualified_name, name, place)
        if name in gates[:index]:
            found.append(duplicate(place, name))
    if gates and spec.get("nodeName"):
        why = "cannot be set until all schedulingGates have been cleared"
        found.append(forbidden_field(f"{where}.nodeName", why))
    return found


def _toleration_problems(spec: JsonObject, where: str) -> list[Cause]:
    found: list[Cause] = []
    for index, toleration in enumerate(items(spec, "tolerations")):
        place = f"{where}.tolerations[{index}]"
        operator = toleration.get("operator") or "Equal"
        if operator not in _OPERATORS:
            found.append(not_supported(f"{place}.operator", operator, _OPERATORS))
        if operator == "Exists" and toleration.get("value"):
            why = "value must be empty when `operator` is 'Exists'"
            found.append(bad_value(f"{place}.operator", toleration["value"], why))
        if not toleration.get("key") and operator != "Exists":
            why = "operator must be Exists when `key` is empty"
            found.append(bad_value(f"{place}.operator", operator, why))
        if toleration.get("effect"):
            found += _choice(toleration, "effect", _EFFECTS, place)
    return found


def _spread_problems(spec: JsonObject, where: str) -> list[Cause]:
    found: list[Cause] = []
    for index, constraint in enumerate(items(spec, "topologySpreadConstraints")):
        place = f"{where}.topologySpreadConstraints[{index}]"
        skew = constraint.get("maxSkew") or 0
        if skew <= 0:
            found.append(bad_value(f"{place}.maxSkew", skew, "must be greater than zero"))
        if not constraint.get("topologyKey"):
            found.append(required(f"{place}.topologyKey", "can not be empty"))
        choice = constraint.get("whenUnsatisfiable")
        if choice not in ("DoNotSchedule", "ScheduleAnyway"):
            field = f"{place}.whenUnsatisfiable"
            found.append(not_supported(field, choice, ("DoNotSchedule", "ScheduleAnyway")))
    return found


def _affinity_problems(spec: JsonObject, where: str) -> list[Cause]:
    affinity = spec.get("affinity") or {}
    found: list[Cause] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        place = f"{where}.affinity.{kind}"
        for name in ("required", "preferred"):
            field = f"{name}DuringSchedulingIgnoredDuringExecution"
            for index, term in enumerate(items(terms, field)):
                inner = term.get("podAffinityTerm", term)
                if not inner.get("topologyKey"):
                    found.append(
                        required(f"{place}.{field}[{index}].topologyKey", "can not be empty")
                    )
    return found
