"""Validation of storage classes, CSI drivers and nodes, capacities and attachments."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    immutable,
    not_supported,
    required,
    too_long,
)
from bayplan.embedded.apiserver.validation.names import name_problems, qualified_name, subdomain
from bayplan.embedded.apiserver.validation.numbers import negative, negative_amount, repeats
from bayplan.embedded.apiserver.validation.selectors import (
    expression_deprecations,
    label_deprecation,
    selector_problems,
    topology_problems,
)
from bayplan.embedded.apiserver.validation.volumes import driver_name_problems, volume_spec_problems

_BYTES = 256 * 1024
_PARAMETERS = 512
_ERROR_LETTERS = 1024
_NODE_ID_LETTERS = 256
_TEN_MINUTES = 600
_MAX_TOKEN_SECONDS = 2**32
_LOGGED = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to "
    "prevent possible logging of tokens in volume attributes"
)


def class_problems(obj: JsonObject) -> list[FieldCause]:
    """Return the problems of a storage class."""
    found = provisioner_problems(obj.get("provisioner") or "", "provisioner")
    found += parameter_problems(obj.get("parameters") or {}, "parameters")
    if obj.get("reclaimPolicy"):
        found += _one_of(obj, "reclaimPolicy", ("Delete", "Retain"), "")
    found += _one_of(obj, "volumeBindingMode", ("Immediate", "WaitForFirstConsumer"), "")
    return found + topology_problems(obj.get("allowedTopologies") or (), "allowedTopologies")


def class_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a change of a storage class: immutable fields."""
    kept = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
    return [immutable(name, new.get(name)) for name in kept if new.get(name) != old.get(name)]


def class_warnings(obj: JsonObject, _: JsonObject | None) -> list[str]:
    """Return the warnings about deprecated labels of a class's topologies."""
    return [
        f"allowedTopologies[{index}].matchLabelExpressions[{place}].key: {message}"
        for index, term in enumerate(obj.get("allowedTopologies") or ())
        for place, one in enumerate(term.get("matchLabelExpressions") or ())
        if (message := label_deprecation(one.get("key") or ""))
    ]


def provisioner_problems(name: str, field: str) -> list[FieldCause]:
    """Return the problems of a provisioner's name."""
    if not name:
        return [required(field)]
    return name_problems(qualified_name, name.lower(), field)


def parameter_problems(
    parameters: JsonObject, field: str, *, needed: bool = False
) -> list[FieldCause]:
    """Return the problems of a class's parameters."""
    if len(parameters) > _PARAMETERS:
        return [too_long(field, _PARAMETERS)]
    found = [bad_value(field, "", "field can not be empty.")] if "" in parameters else []
    if _size(parameters) > _BYTES:
        found.append(too_long(field, _BYTES))
    if needed and not parameters:
        found.append(required(field, "must contain at least one key/value pair"))
    return found


def _size(words: JsonObject) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in words.items())


def _one_of(obj: JsonObject, name: str, choices: tuple[str, ...], where: str) -> list[FieldCause]:
    value = obj.get(name)
    return [] if value in choices else [not_supported(f"{where}{name}", value, choices)]


def attributes_class_problems(obj: JsonObject) -> list[FieldCause]:
    """Return the problems of a VolumeAttributesClass."""
    found = provisioner_problems(obj.get("driverName") or "", "driverName")
    return found + parameter_problems(obj.get("parameters") or {}, "parameters", needed=True)


def attributes_class_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Refuse changes of a VolumeAttributesClass."""
    return [
        forbidden_field(name, f"updates to {name} are forbidden.")
        for name in ("driverName", "parameters")
        if new.get(name) != old.get(name)
    ]


def csi_node_problems(obj: JsonObject) -> list[FieldCause]:
    """Return the problems of a CSINode."""
    found: list[FieldCause] = []
    names: set[str] = set()
    for index, driver in enumerate(obj["spec"].get("drivers") or ()):
        field, name = f"spec.drivers[{index}]", driver.get("name") or ""
        found += driver_name_problems(name, f"{field}.name")
        found += _node_id_problems(driver.get("nodeID") or "", f"{field}.nodeID")
        found += negative(driver.get("allocatable") or {}, ("count",), f"{field}.allocatable")
        if name in names:
            found.append(duplicate(f"{field}.name", name))
        names.add(name)
        found += _topology_key_problems(driver.get("topologyKeys") or [], field)
    return found


def _node_id_problems(node_id: str, field: str) -> list[FieldCause]:
    if not node_id:
        return [required(field)]
    if len(node_id.encode()) <= _NODE_ID_LETTERS:
        return []
    return [bad_value(field, node_id, f"must be {_NODE_ID_LETTERS} characters or less")]


def _topology_key_problems(keys: list[str], field: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    again = set(repeats(keys))
    for index, key in enumerate(keys):
        if not key:
            found.append(required(field))
        if index in again:
            found.append(duplicate(field, key))
        found += name_problems(qualified_name, key, field)
    return found


def csi_node_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Allow only changes of a driver's allocatable count."""
    found: list[FieldCause] = []
    for before in old["spec"].get("drivers") or ():
        for after in new["spec"].get("drivers") or ():
            if after["name"] == before["name"]:
                shown = {**after, "allocatable": None}
                if shown != {**before, "allocatable": None}:
                    found.append(
                        immutable("spec.drivers", internal_form(shown, "storage.CSINodeDriver"))
                    )
    return found


def driver_problems(obj: JsonObject) -> list[FieldCause]:
    """Return the problems of a CSI driver."""
    spec = obj["spec"]
    policies = ("File", "None", "ReadWriteOnceWithFSType")
    found = _one_of(spec, "fsGroupPolicy", policies, "spec.")
    found += _token_problems(spec.get("tokenRequests") or (), "spec.tokenRequests")
    found += _lifecycle_problems(spec.get("volumeLifecycleModes") or ())
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        detail = "must be greater than or equal to 10 seconds"
        found.append(bad_value("spec.nodeAllocatableUpdatePeriodSeconds", period, detail))
    secret = spec.get("serviceAccountTokenInSecrets")
    if secret is not None and not spec.get("tokenRequests"):
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        found.append(bad_value("spec.serviceAccountTokenInSecrets", secret, detail))
    return found


def _token_problems(requests: Iterable[JsonObject], field: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    audiences: set[str] = set()
    for index, one in enumerate(requests):
        audience, place = one.get("audience") or "", f"{field}[{index}]"
        if audience in audiences:
            found.append(duplicate(f"{place}.audience", audience))
            continue
        audiences.add(audience)
        found += _expiration_problems(one.get("expirationSeconds"), f"{place}.expirationSeconds")
    return found


def _expiration_problems(seconds: int | None, field: str) -> list[FieldCause]:
    if seconds is not None and seconds < _TEN_MINUTES:
        return [bad_value(field, seconds, "may not specify a duration less than 10 minutes")]
    if seconds is not None and seconds > _MAX_TOKEN_SECONDS:
        return [bad_value(field, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def _lifecycle_problems(modes: Iterable[str]) -> list[FieldCause]:
    choices = ("Persistent", "Ephemeral")
    return [
        not_supported("spec.volumeLifecycleModes", mode, choices)
        for mode in modes
        if mode not in choices
    ]


def driver_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return changed immutable fields of a CSIDriver, by their names in messages."""
    kept = {"attachRequired": "attachedRequired", "volumeLifecycleModes": "volumeLifecycleModes"}
    return [
        immutable(f"spec.{label}", new["spec"].get(name))
        for name, label in kept.items()
        if new["spec"].get(name) != old["spec"].get(name)
    ]


def driver_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Warn about tokens that the driver gets in the volume context, where they are logged."""
    wanted = new["spec"].get("tokenRequests")
    if old is not None and old["spec"].get("tokenRequests") == wanted:
        return []
    safe = new["spec"].get("serviceAccountTokenInSecrets") is not None
    return [_LOGGED] if wanted and not safe else []


def capacity_problems(obj: JsonObject) -> list[FieldCause]:
    """Return the problems of a CSIStorageCapacity."""
    found = selector_problems(obj.get("nodeTopology"), "nodeTopology")
    found += name_problems(subdomain, obj.get("storageClassName") or "", "storageClassName")
    return found + negative_amount(obj.get("capacity"), "capacity")


def capacity_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a change of a CSIStorageCapacity: immutable fields."""
    found: list[FieldCause] = []
    if new.get("nodeTopology") != old.get("nodeTopology"):
        topology = new.get("nodeTopology")
        shown = topology and internal_form(topology, "meta.LabelSelector")
        found.append(immutable("nodeTopology", shown))
    if new.get("storageClassName") != old.get("storageClassName"):
        found.append(immutable("storageClassName", new.get("storageClassName") or ""))
    return found


def capacity_warnings(obj: JsonObject, _: JsonObject | None) -> list[str]:
    """Return the warnings about deprecated labels of a capacity's place."""
    topology = obj.get("nodeTopology") or {}
    field = "nodeTopology.matchExpressions"
    found = expression_deprecations(topology.get("matchExpressions"), field)
    for key in topology.get("matchLabels") or ():
        if message := label_deprecation(key):
            found.append(f"nodeTopology.matchLabels.{key}: {message}")
    return found


def attachment_problems(obj: JsonObject) -> list[FieldCause]:
    """Return the problems of a VolumeAttachment."""
    spec = obj["spec"]
    found = driver_name_problems(spec.get("attacher") or "", "spec.attacher")
    found += _source_problems(spec.get("source") or {})
    found += name_problems(subdomain, spec.get("nodeName") or "", "spec.nodeName")
    found += attachment_status_problems(obj, obj)
    volume = (spec.get("source") or {}).get("persistentVolumeName")
    if volume is not None:
        found += name_problems(subdomain, volume, "spec.source.persistentVolumeName")
    return found


def _source_problems(source: JsonObject) -> list[FieldCause]:
    volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if volume is None and inline is None:
        return [required("spec.source", detail)]
    if volume is not None and inline is not None:
        return [forbidden_field("spec.source", detail)]
    if inline is not None:
        return volume_spec_problems(inline, "", "spec.source.inlineVolumeSpec", inline=True)
    if volume:
        return []
    detail = "must specify non empty persistentVolumeName"
    return [required("spec.source.persistentVolumeName", detail)]


def attachment_status_problems(new: JsonObject, _: JsonObject) -> list[FieldCause]:
    """Return the problems of a VolumeAttachment's status."""
    status = new.get("status") or {}
    found: list[FieldCause] = []
    if _size(status.get("attachmentMetadata") or {}) > _BYTES:
        found.append(too_long("status.attachmentMetadata", _BYTES))
    for name in ("attachError", "detachError"):
        found += _error_problems(status.get(name) or {}, f"status.{name}")
    return found


def _error_problems(error: JsonObject, field: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    if len((error.get("message") or "").encode()) > _ERROR_LETTERS:
        found.append(too_long(f"{field}.message", _BYTES))
    code = error.get("errorCode")
    if code is not None and code < 0:
        detail = "must be between 0 and 2147483647, inclusive"
        found.append(bad_value(f"{field}.errorCode", code, detail))
    return found


def attachment_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Refuse changes of a VolumeAttachment's spec."""
    if new["spec"] == old["spec"]:
        return []
    return [immutable("spec", internal_form(new["spec"], "storage.VolumeAttachmentSpec"))]
