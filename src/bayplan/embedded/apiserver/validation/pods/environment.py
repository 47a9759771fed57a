"""A container's environment: variables, and where their values come from."""

from __future__ import annotations

import re

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    missing,
    not_supported,
    required,
)
from bayplan.embedded.apiserver.validation.names import (
    config_key,
    dns_label,
    name_problems,
    qualified_name,
    subdomain,
)
from bayplan.embedded.apiserver.validation.paths import backstep_problems
from bayplan.embedded.apiserver.validation.pods.choices import containers_of, required_name
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
_LONGEST_PATH = 1000
_SOURCES = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
    "`fileKeyRef`"
)
_SEVERAL = "may not have more than one field specified at a time"


def variable_name(name: str) -> list[str]:
    """Names of variables: whatever can be printed, but no equals sign."""
    if not name:
        return ["environment variable name must be non-empty"]
    if name.isascii() and name.isprintable() and "=" not in name:
        return []
    why = "a valid environment variable name must consist only of printable ASCII characters"
    return [f"{why} other than '='"]


def environment_problems(container: JsonObject, at: str) -> list[Cause]:
    """What is wrong with a container's variables."""
    found: list[Cause] = []
    for index, variable in enumerate(container.get("env") or ()):
        place = f"{at}.env[{index}]"
        found += required_name(variable.get("name"), f"{place}.name", variable_name)
        if variable.get("valueFrom") is not None:
            found += _value_problems(variable, f"{place}.valueFrom")
    for index, source in enumerate(container.get("envFrom") or ()):
        found += _source_problems(source, f"{at}.envFrom", index)
    return found


def _value_problems(variable: JsonObject, at: str) -> list[Cause]:
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


def _source_problems(source: JsonObject, at: str, index: int) -> list[Cause]:
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


def field_problems(reference: JsonObject, at: str, fields: tuple[str, ...]) -> list[Cause]:
    """What is wrong with a reference to a field of the pod."""
    for name in ("apiVersion", "fieldPath"):
        if not reference.get(name):
            return [required(f"{at}.{name}")]
    path, version = reference["fieldPath"], reference["apiVersion"]
    split = _SUBSCRIPT.fullmatch(path) if len(path) <= _LONGEST_PATH else None
    if why := _unreadable(version, path, split):
        return [bad_value(f"{at}.fieldPath", path, f"error converting fieldPath: {why}")]
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


def resource_field_problems(reference: JsonObject, at: str, *, named: bool) -> list[Cause]:
    """What is wrong with a reference to a container's resource; `named` if it must say whose."""
    resource = reference.get("resource") or ""
    found: list[Cause] = []
    if named and not reference.get("containerName"):
        found.append(required(f"{at}.containerName"))
    elif not resource:
        found.append(required(f"{at}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_PAGES):
        found.append(not_supported(f"{at}.resource", resource, _RESOURCES))
    return found + _divisor_problems(resource, reference.get("divisor") or "0", at)


def _divisor_problems(resource: str, divisor: str, at: str) -> list[Cause]:
    name = "hugepages" if resource.startswith(_PAGES) else resource.partition(".")[2]
    if amount(divisor) == 0 or name not in _DIVISORS:
        return []
    known = name == "hugepages" or resource in _RESOURCES
    supported, which = _DIVISORS[name]
    if not known or divisor in supported:
        return []
    return [bad_value(f"{at}.divisor", resource, f"only divisor's values {which} resource")]


def _key_problems(reference: JsonObject, at: str) -> list[Cause]:
    found = name_problems(subdomain, reference.get("name") or "", f"{at}.name")
    return found + required_name(reference.get("key"), f"{at}.key", config_key)


def _file_problems(reference: JsonObject, at: str) -> list[Cause]:
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
    "fileKeyRef": _file_problems,
}


def file_volume_problems(spec: JsonObject, at: str) -> list[Cause]:
    """Variables can be read from files of the pod's own scratch volumes only."""
    volumes = {one.get("name"): one for one in spec.get("volumes") or ()}
    found: list[Cause] = []
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
