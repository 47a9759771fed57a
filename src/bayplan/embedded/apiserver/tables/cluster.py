"""Columns of nodes, volumes, services and other kinds."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    Column,
    age,
    column,
    joined,
    labels,
)

_ROLE = "node-role.kubernetes.io/"
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
UNSET = "<unset>"


def _spec(obj: JsonObject) -> JsonObject:
    return obj.get("spec") or {}


def _status(obj: JsonObject) -> JsonObject:
    return obj.get("status") or {}


def node_status(node: JsonObject) -> str:
    """Return Ready, NotReady or Unknown, and whether the node is cordoned."""
    word = "Unknown"
    for condition in _status(node).get("conditions") or ():
        if condition.get("type") == "Ready":
            word = "Ready" if condition.get("status") == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if _spec(node).get("unschedulable") else word


def _roles(node: JsonObject) -> str:
    names = [
        key.removeprefix(_ROLE)
        for key in node["metadata"].get("labels") or {}
        if key.startswith(_ROLE)
    ]
    return joined(sorted(name for name in names if name))


def _address(kind: str, node: JsonObject) -> str:
    for address in _status(node).get("addresses") or ():
        if address.get("type") == kind:
            return str(address.get("address"))
    return NONE


def _info(field: str, default: str = "<unknown>") -> Column:
    titles = {
        "osImage": "OS-Image",
        "kernelVersion": "Kernel-Version",
        "containerRuntimeVersion": "Container-Runtime",
    }

    def read(node: JsonObject) -> JsonValue:
        return (_status(node).get("nodeInfo") or {}).get(field) or default

    return column(titles[field], read, wide=True)


NODE = (
    NAME,
    column("Status", node_status),
    column("Roles", _roles),
    AGE,
    column("Version", lambda n: (_status(n).get("nodeInfo") or {}).get("kubeletVersion") or ""),
    column("Internal-IP", lambda node: _address("InternalIP", node), wide=True),
    column("External-IP", lambda node: _address("ExternalIP", node), wide=True),
    _info("osImage"),
    _info("kernelVersion"),
    _info("containerRuntimeVersion"),
)
NAMESPACE = (NAME, column("Status", lambda obj: _status(obj).get("phase") or ""), AGE)


def _ports(service: JsonObject) -> str:
    return joined(
        f"{port.get('port')}"
        + (f":{port['nodePort']}" if port.get("nodePort") else "")
        + f"/{port.get('protocol', 'TCP')}"
        for port in _spec(service).get("ports") or ()
    )


SERVICE = (
    NAME,
    column("Type", lambda obj: _spec(obj).get("type", "")),
    column("Cluster-IP", lambda obj: _spec(obj).get("clusterIP") or NONE),
    column("External-IP", lambda obj: joined(_spec(obj).get("externalIPs") or ())),
    column("Port(s)", _ports),
    AGE,
    column("Selector", lambda obj: labels(_spec(obj).get("selector")), wide=True),
)


def _access(spec: JsonObject) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in spec.get("accessModes") or ())


def _claim(volume: JsonObject) -> str:
    reference = _spec(volume).get("claimRef")
    return f"{reference.get('namespace')}/{reference.get('name')}" if reference else ""


def _phase(obj: JsonObject) -> str:
    phase = _status(obj).get("phase") or ""
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else str(phase)


_VOLUME_MODE = column("VolumeMode", lambda obj: _spec(obj).get("volumeMode") or UNSET, wide=True)
_ATTRIBUTES = column(
    "VolumeAttributesClass", lambda obj: _spec(obj).get("volumeAttributesClassName") or UNSET
)
VOLUME = (
    NAME,
    column("Capacity", lambda obj: (_spec(obj).get("capacity") or {}).get("storage", "")),
    column("Access Modes", lambda obj: _access(_spec(obj))),
    column("Reclaim Policy", lambda obj: _spec(obj).get("persistentVolumeReclaimPolicy", "")),
    column("Status", _phase),
    column("Claim", _claim),
    column("StorageClass", lambda obj: _spec(obj).get("storageClassName", "")),
    _ATTRIBUTES,
    column("Reason", lambda obj: _status(obj).get("reason", "")),
    AGE,
    _VOLUME_MODE,
)
CLAIM = (
    NAME,
    column("Status", _phase),
    column("Volume", lambda obj: _spec(obj).get("volumeName", "")),
    column("Capacity", lambda obj: (_status(obj).get("capacity") or {}).get("storage", "")),
    column("Access Modes", lambda obj: _access(_status(obj))),
    column("StorageClass", lambda obj: _spec(obj).get("storageClassName", "")),
    _ATTRIBUTES,
    AGE,
    _VOLUME_MODE,
)


def _count(*fields: str) -> Column:
    return column("Data", lambda obj: sum(len(obj.get(field) or {}) for field in fields))


def _class_name(obj: JsonObject) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    return f"{obj['metadata']['name']}{' (default)' if default else ''}"


CONFIG_MAP = (NAME, _count("data", "binaryData"), AGE)
SECRET = (NAME, column("Type", lambda obj: obj.get("type", "")), _count("data"), AGE)
STORAGE_CLASS = (
    replace(column("Name", _class_name), format="name"),
    column("Provisioner", lambda obj: obj.get("provisioner", "")),
    column("ReclaimPolicy", lambda obj: obj.get("reclaimPolicy", "")),
    column("VolumeBindingMode", lambda obj: obj.get("volumeBindingMode", "")),
    column("AllowVolumeExpansion", lambda obj: str(bool(obj.get("allowVolumeExpansion"))).lower()),
    AGE,
)
CSI_NODE = (
    NAME,
    column("Drivers", lambda obj: len(_spec(obj).get("drivers") or ()), type_="integer"),
    AGE,
)


def _flag(name: str, field: str) -> Column:
    return column(name, lambda obj: bool(_spec(obj).get(field)), type_="boolean")


def _audiences(driver: JsonObject) -> str:
    wanted = _spec(driver).get("tokenRequests")
    return UNSET if wanted is None else joined(one.get("audience", "") for one in wanted)


CSI_DRIVER = (
    NAME,
    _flag("AttachRequired", "attachRequired"),
    _flag("PodInfoOnMount", "podInfoOnMount"),
    _flag("StorageCapacity", "storageCapacity"),
    column("TokenRequests", _audiences),
    _flag("RequiresRepublish", "requiresRepublish"),
    column("Modes", lambda obj: joined(_spec(obj).get("volumeLifecycleModes") or ())),
    AGE,
)
ATTACHMENT = (
    NAME,
    replace(column("Attacher", lambda obj: _spec(obj).get("attacher", "")), format="name"),
    column("PV", lambda obj: (_spec(obj).get("source") or {}).get("persistentVolumeName", "")),
    column("Node", lambda obj: _spec(obj).get("nodeName", "")),
    column("Attached", lambda obj: bool(_status(obj).get("attached")), type_="boolean"),
    AGE,
)
PRIORITY_CLASS = (
    NAME,
    column("Value", lambda obj: obj.get("value") or 0, type_="integer"),
    column("Global-Default", lambda obj: bool(obj.get("globalDefault")), type_="boolean"),
    AGE,
    column("PreemptionPolicy", lambda obj: obj.get("preemptionPolicy", "")),
)
RUNTIME_CLASS = (NAME, column("Handler", lambda obj: obj.get("handler", "")), AGE)
BUDGET = (
    NAME,
    column("Min Available", lambda obj: str(_spec(obj).get("minAvailable", "N/A"))),
    column("Max Unavailable", lambda obj: str(_spec(obj).get("maxUnavailable", "N/A"))),
    column(
        "Allowed Disruptions",
        lambda obj: _status(obj).get("disruptionsAllowed") or 0,
        type_="integer",
    ),
    AGE,
)
LEASE = (NAME, column("Holder", lambda obj: _spec(obj).get("holderIdentity", "")), AGE)


def _first_seen(event: JsonObject, now: datetime) -> str:
    return age(event.get("firstTimestamp") or event.get("eventTime"), now)


def _last_seen(event: JsonObject, now: datetime) -> str:
    series = event.get("series")
    if series is not None:
        return age(series.get("lastObservedTime"), now)
    last = event.get("lastTimestamp")
    return age(last, now) if last else _first_seen(event, now)


def _times(event: JsonObject) -> int:
    series = event.get("series")
    found: int = event.get("count") or 1 if series is None else series.get("count") or 0
    return found


def _object(event: JsonObject) -> str:
    about = event.get("involvedObject") or {}
    kind, name = (about.get("kind") or "").lower(), about.get("name")
    return f"{kind}/{name}" if name else kind


def _source(event: JsonObject) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    instance = source.get("host") or event.get("reportingInstance")
    return f"{component}, {instance}" if instance else component


EVENT = (
    Column("Last Seen", _last_seen),
    column("Type", lambda obj: obj.get("type", "")),
    column("Reason", lambda obj: obj.get("reason", "")),
    column("Object", _object),
    column(
        "Subobject", lambda obj: (obj.get("involvedObject") or {}).get("fieldPath", ""), wide=True
    ),
    column("Source", _source, wide=True),
    column("Message", lambda obj: (obj.get("message") or "").strip()),
    Column("First Seen", _first_seen, priority=1),
    column("Count", _times, wide=True),
    replace(NAME, priority=1),
)
