"""Validation of environment variables, and of volumes made of API objects.

Both take values from secrets, config maps and fields of the pod; volumes also take tokens.
"""

from __future__ import annotations

import re

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    forbidden_field,
    missing,
    not_supported,
    required,
)
from bayplan.embedded.apiserver.validation.names import (
    backstep_problems,
    config_key,
    dns_label,
    local_path_problems,
    name_problems,
    qualified_name,
    subdomain,
)
from bayplan.embedded.apiserver.validation.pods.choices import (
    MODE,
    containers_of,
    needed,
    required_name,
)
from bayplan.kube.quantity import parse as amount

FIELDS_OF_VARIABLES = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
    "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
FIELDS_OF_FILES = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace",
    "metadata.uid",
)  # fmt: skip
_FIELDS = {*FIELDS_OF_VARIABLES, *FIELDS_OF_FILES} | {
    "spec.restartPolicy", "spec.schedulerName", "status.phase",
}  # fmt: skip
_RESOURCES = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu",
    "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip
_PAGES = ("requests.hugepages-", "limits.hugepages-")
_UNITS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_DIVISORS = {
    "cpu": (("1m", "1"), "1m and 1 are supported with the cpu"),
    "memory": (_UNITS, f"{', '.join(_UNITS)} are supported with the memory"),
    "ephemeral-storage": (
        _UNITS,
        f"{', '.join(_UNITS)} are supported with the local ephemeral storage",
    ),
    "hugepages": (_UNITS, f"{', '.join(_UNITS)} are supported with the hugepages"),
}
_SUBSCRIPT = re.compile(r"(?P<path>.+?)\['(?P<key>.*)'\]", re.DOTALL)
_MAX_PATH_LENGTH = 1000
_SOURCES = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
    "`fileKeyRef`"
)
_SEVERAL = "may not have more than one field specified at a time"


def variable_name(name: str) -> list[str]:
    """Validate a variable name: printable characters except `=`."""
    if not name:
        return ["environment variable name must be non-empty"]
    if name.isascii() and name.isprintable() and "=" not in name:
        return []
    detail = "a valid environment variable name must consist only of printable ASCII characters"
    return [f"{detail} other than '='"]


def environment_problems(container: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems of a container's environment variables."""
    found: list[FieldCause] = []
    for index, variable in enumerate(container.get("env") or ()):
        place = f"{at}.env[{index}]"
        found += required_name(variable.get("name"), f"{place}.name", variable_name)
        if variable.get("valueFrom") is not None:
            found += _value_problems(variable, f"{place}.valueFrom")
    for index, source in enumerate(container.get("envFrom") or ()):
        found += _source_problems(source, f"{at}.envFrom", index)
    return found


def _value_problems(variable: JsonObject, at: str) -> list[FieldCause]:
    source, found, count = variable["valueFrom"], [], 0
    for name, rule in _RULES.items():
        if source.get(name) is not None:
            count += 1
            found += rule(source[name], f"{at}.{name}")
    if not count:
        found.append(bad_value(at, "", _SOURCES))
    elif variable.get("value"):
        found.append(bad_value(at, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        found.append(bad_value(at, "", _SEVERAL))
    return found


def _source_problems(source: JsonObject, at: str, index: int) -> list[FieldCause]:
    found, count = [], 0
    if source.get("prefix"):
        found += name_problems(variable_name, source["prefix"], f"{at}[{index}].prefix")
    for name in ("configMapRef", "secretRef"):
        if source.get(name) is not None:
            count += 1
            found += required_name(
                source[name].get("name"), f"{at}[{index}].{name}.name", subdomain
            )
    if not count:
        found.append(bad_value(at, "", "must specify one of: `configMapRef` or `secretRef`"))
    elif count > 1:
        found.append(bad_value(at, "", _SEVERAL))
    return found


def field_problems(reference: JsonObject, at: str, fields: tuple[str, ...]) -> list[FieldCause]:
    """Return the problems of a reference to a field of the pod."""
    for name in ("apiVersion", "fieldPath"):
        if not reference.get(name):
            return [required(f"{at}.{name}")]
    path, version = reference["fieldPath"], reference["apiVersion"]
    split = _SUBSCRIPT.fullmatch(path) if len(path) <= _MAX_PATH_LENGTH else None
    if detail := _unreadable(version, path, split):
        return [bad_value(f"{at}.fieldPath", path, f"error converting fieldPath: {detail}")]
    if split is not None:
        key = split["key"].lower() if split["path"] == "metadata.annotations" else split["key"]
        return name_problems(qualified_name, key, at)
    path = "spec.nodeName" if path == "spec.host" else path
    return [] if path in fields else [not_supported(f"{at}.fieldPath", path, fields)]


def _unreadable(version: str, path: str, split: re.Match[str] | None) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if split is not None:
        supported = split["path"] in ("metadata.annotations", "metadata.labels")
        return "" if supported else f"field label does not support subscript: {path}"
    return "" if path in _FIELDS or path == "spec.host" else f"field label not supported: {path}"


def resource_field_problems(reference: JsonObject, at: str, *, named: bool) -> list[FieldCause]:
    """Return the problems of a resource reference; `named` if it needs a container name."""
    resource = reference.get("resource") or ""
    found: list[FieldCause] = []
    if named and not reference.get("containerName"):
        found.append(required(f"{at}.containerName"))
    elif not resource:
        found.append(required(f"{at}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_PAGES):
        found.append(not_supported(f"{at}.resource", resource, _RESOURCES))
    return found + _divisor_problems(resource, reference.get("divisor") or "0", at)


def _divisor_problems(resource: str, divisor: str, at: str) -> list[FieldCause]:
    name = "hugepages" if resource.startswith(_PAGES) else resource.partition(".")[2]
    if amount(divisor) == 0 or name not in _DIVISORS:
        return []
    known = name == "hugepages" or resource in _RESOURCES
    supported, which = _DIVISORS[name]
    if not known or divisor in supported:
        return []
    return [bad_value(f"{at}.divisor", resource, f"only divisor's values {which} resource")]


def _key_problems(reference: JsonObject, at: str) -> list[FieldCause]:
    found = name_problems(subdomain, reference.get("name") or "", f"{at}.name")
    return found + required_name(reference.get("key"), f"{at}.key", config_key)


def _file_key_problems(reference: JsonObject, at: str) -> list[FieldCause]:
    path = reference.get("path") or ""
    return [
        *required_name(reference.get("key"), f"{at}.key", variable_name),
        *required_name(reference.get("volumeName"), f"{at}.volumeName", dns_label),
        *(backstep_problems(path, f"{at}.path") if path else [required(f"{at}.path")]),
    ]


_RULES = {
    "fieldRef": lambda one, at: field_problems(one, at, FIELDS_OF_VARIABLES),
    "resourceFieldRef": lambda one, at: resource_field_problems(one, at, named=False),
    "configMapKeyRef": _key_problems,
    "secretKeyRef": _key_problems,
    "fileKeyRef": _file_key_problems,
}


def file_volume_problems(spec: JsonObject, at: str) -> list[FieldCause]:
    """Require variables from files to use emptyDir volumes."""
    volumes = {one.get("name"): one for one in spec.get("volumes") or ()}
    found: list[FieldCause] = []
    for container, place in containers_of(spec, at):
        for index, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            field = f"{place}.env[{index}].valueFrom.fileKeyRef.volumeName"
            name = reference.get("volumeName") or ""
            if name not in volumes:
                found.append(missing(field, name))
            elif volumes[name].get("emptyDir") is None:
                found.append(bad_value(field, name, "referenced volume must be of type emptyDir"))
    return found


_LEAST_SECONDS = 10 * 60
_MAX_SECONDS = 2**32


def _mode_problems(source: JsonObject, name: str, at: str) -> list[FieldCause]:
    mode = source.get(name)
    return [] if mode is None or 0 <= mode <= 0o777 else [bad_value(f"{at}.{name}", mode, MODE)]


def _item_problems(source: JsonObject, at: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    for index, item in enumerate(source.get("items") or ()):
        place = f"{at}.items[{index}]"
        found += needed("key", "path")(item, place)
        found += local_path_problems(item.get("path") or "", f"{place}.path")
        found += _mode_problems(item, "mode", place)
    return found


def secret_problems(source: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems of a secret volume."""
    found = needed("secretName")(source, at)
    return found + _mode_problems(source, "defaultMode", at) + _item_problems(source, at)


def config_problems(source: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems of a configMap volume."""
    found = needed("name")(source, at)
    return found + _mode_problems(source, "defaultMode", at) + _item_problems(source, at)


def downward_problems(source: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems of a downwardAPI volume."""
    found = _mode_problems(source, "defaultMode", at)
    for file in source.get("items") or ():
        found += _file_problems(file, at)
    return found


def _file_problems(file: JsonObject, at: str) -> list[FieldCause]:
    found = needed("path")(file, at)
    found += local_path_problems(file.get("path") or "", f"{at}.path")
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        found += field_problems(field, f"{at}.fieldRef", FIELDS_OF_FILES)
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            found.append(bad_value(at, "resource", detail))
    elif resource is not None:
        found += resource_field_problems(resource, f"{at}.resourceFieldRef", named=True)
    else:
        found.append(required(at, "one of fieldRef and resourceFieldRef is required"))
    return found + _mode_problems(file, "mode", at)


def projected_problems(source: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems of a projected volume."""
    found = _mode_problems(source, "defaultMode", at)
    paths: set[str] = set()
    for index, one in enumerate(source.get("sources") or ()):
        place, kinds = f"{at}.sources[{index}]", 0
        for kind in ("secret", "configMap", "downwardAPI", "serviceAccountToken"):
            if one.get(kind) is not None:
                kinds += 1
                found += _projection_problems(kind, one[kind], at, f"{place}.{kind}", paths)
        if kinds > 1:
            detail = "may not specify more than 1 volume type per source"
            found.append(forbidden_field(place, detail))
    return found


def _projection_problems(
    kind: str, source: JsonObject, at: str, place: str, paths: set[str]
) -> list[FieldCause]:
    if kind == "serviceAccountToken":
        return _token_problems(source, at, place)
    items = source.get("items") or []
    if kind == "downwardAPI":
        found = [cause for file in items for cause in _file_problems(file, place)]
        return found + _clash_problems(items, None, at, paths)
    found = needed("name")(source, place) + _item_problems(source, place)
    return found + _clash_problems(items, source.get("name") or "", at, paths)


def _clash_problems(
    items: list[JsonObject], name: str | None, at: str, paths: set[str]
) -> list[FieldCause]:
    found = []
    for item in items:
        path = item.get("path")
        if path in paths:
            shown = path if name is None else name
            found.append(bad_value(at, shown, "conflicting duplicate paths"))
        elif path:
            paths.add(path)
    return found


def _token_problems(source: JsonObject, at: str, place: str) -> list[FieldCause]:
    found, seconds = [], source.get("expirationSeconds") or 0
    if seconds < _LEAST_SECONDS:
        detail = "may not specify a duration less than 10 minutes"
        found.append(bad_value(f"{place}.expirationSeconds", seconds, detail))
    if seconds > _MAX_SECONDS:
        detail = "may not specify a duration larger than 2^32 seconds"
        found.append(bad_value(f"{place}.expirationSeconds", seconds, detail))
    path = source.get("path") or ""
    if not path:
        return [*found, required(f"{at}.path")]
    return found + local_path_problems(path, f"{at}.path")


def token_account_problems(spec: JsonObject, at: str) -> list[FieldCause]:
    """Require a service account for pods with token projections."""
    if spec.get("serviceAccountName"):
        return []
    return [
        forbidden_field(
            f"{at}.volumes[{index}].projected.sources[{number}].serviceAccountToken",
            "must not be specified when serviceAccountName is not set",
        )
        for index, volume in enumerate(spec.get("volumes") or ())
        for number, source in enumerate((volume.get("projected") or {}).get("sources") or ())
        if source.get("serviceAccountToken") is not None
    ]
