"""Validation of values: their types, and whether they contradict each other.

`validate_values` refuses, with the path of the value, what a daemon or the API server would refuse
after deployment; `json_schema` gives Helm the same rules, as far as a JSON schema can express them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec
from msgspec import UNSET

from bayplan.base.configfiles import (
    ConfigFileError,
    FieldProblem,
    convert_value,
    parse,
    refuse_unknown_fields,
)
from bayplan.deploy.value_types import END, Free, StrictStruct, TolerationValue, is_section
from bayplan.deploy.values import DaemonValues, Values, find_value, merge_values
from bayplan.kube.attachtables import CustomLimits, check_custom_limits
from bayplan.kube.pods import Affinity
from bayplan.kube.quantity import parse as amount


@dataclass(frozen=True, slots=True)
class ValueConflict:
    """Values that must not be set together; the error names the first of them."""

    when: Mapping[str, bool]
    reason: str


CONFLICTS = (
    ValueConflict(
        {"nodeLimits.enabled": True, "nodeAgent.enabled": True, "nodeAgent.limits": True},
        "both would publish the same keys of every node, and undo each other's changes if their"
        " tables differ: set nodeAgent.limits=false, or disable one of them",
    ),
    ValueConflict(
        {"nodeAgent.enabled": True, "nodeAgent.limits": False, "nodeAgent.images": False},
        "the agent would have nothing to do: enable nodeAgent.limits or nodeAgent.images",
    ),
    ValueConflict(
        {"autoscaler.clusterApi": True, "autoscaler.enabled": False},
        "needs autoscaler.enabled=true, since the role is bound to the autoscaler",
    ),
)


def validate_values(given: Free) -> Values:
    """Return the given values over the defaults; FieldProblem if one is invalid."""
    whole = merge_values(msgspec.to_builtins(Values()), given)
    for path in _removed_fields(whole, Values()):
        raise FieldProblem(path, "must not be null")
    values = convert_value(whole, Values)
    _check(values)
    return values


def refuse_conflicts(values: Values) -> None:
    """Raise FieldProblem for values that must not be set together."""
    for conflict in CONFLICTS:
        if all(find_value(values, path) is on for path, on in conflict.when.items()):
            raise FieldProblem(next(iter(conflict.when)), conflict.reason)


def json_schema() -> Free:
    """Return the JSON schema of values.yaml, self-contained, as Helm applies it to all values."""
    made = msgspec.json.schema(Values)
    whole = cast("Free", _inlined(made["$defs"][Values.__name__], made["$defs"]))
    _require(whole, Values())
    # Helm adds this field.
    whole["properties"]["global"] = {"type": "object"}
    whole["allOf"] = [{"not": _holds(conflict.when)} for conflict in CONFLICTS]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **whole}


def _removed_fields(whole: object, usual: StrictStruct, above: str = "") -> Iterator[str]:
    """Yield the paths of fields that a null has removed."""
    for one in msgspec.structs.fields(usual) if isinstance(whole, dict) else ():
        path, inner = f"{above}{one.encode_name}", getattr(usual, one.name)
        if one.encode_name not in cast("Free", whole):
            yield path
        elif is_section(inner):
            yield from _removed_fields(cast("Free", whole)[one.encode_name], inner, f"{path}.")


def _check(values: Values) -> None:
    """Raise FieldProblem for values of the right type that are invalid."""
    _check_address(values.listen_address)
    _check_limits(values.node_limits.limits)
    for one in msgspec.structs.fields(values):
        held = getattr(values, one.name)
        if isinstance(held, DaemonValues):
            _check_amounts(held, f"{one.encode_name}.resources")
            for at, toleration in enumerate(held.tolerations):
                _check_toleration(toleration, f"{one.encode_name}.tolerations[{at}]")
            affinity, path = msgspec.to_builtins(held.affinity), f"{one.encode_name}.affinity"
            refuse_unknown_fields(affinity, Affinity, path)
            convert_value(affinity, Affinity, path)


def _check_address(text: str) -> None:
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        raise FieldProblem("listenAddress", f"{text!r} is not an IP address") from None
    if address.is_loopback:
        raise FieldProblem("listenAddress", f"probes and Prometheus cannot reach {text}")


def _check_limits(text: str) -> None:
    field = "nodeLimits.limits"
    try:
        check_custom_limits(parse(text.encode(), "line", CustomLimits).value)
    except (ConfigFileError, FieldProblem) as error:
        raise FieldProblem(field, str(error)) from None


def _check_amounts(workload: DaemonValues, path: str) -> None:
    limits = workload.resources.limits or {}
    for name, request in (workload.resources.requests or {}).items():
        if name in limits and amount(request) > amount(limits[name]):
            problem = f"{request} is more than the limit, {limits[name]}"
            raise FieldProblem(f"{path}.requests.{name}", problem)


def _check_toleration(one: TolerationValue, path: str) -> None:
    """Refuse a toleration with which the API server would refuse the pods."""
    if one.operator == "Exists" and one.value:
        raise FieldProblem(f"{path}.value", "must be empty with operator Exists")
    if one.operator != "Exists" and not one.key:
        raise FieldProblem(f"{path}.operator", "must be Exists if there is no key")
    if one.toleration_seconds is not UNSET and one.effect != "NoExecute":
        raise FieldProblem(f"{path}.effect", "must be NoExecute if tolerationSeconds is set")


def _inlined(node: object, definitions: Free) -> object:
    """Return a schema without references and descriptions; values.yaml has the comments."""
    if isinstance(node, list):
        return [_inlined(one, definitions) for one in node]
    if not isinstance(node, dict):
        return node.replace(END, "$") if isinstance(node, str) else node
    if "$ref" in node:
        return _inlined(definitions[str(node["$ref"]).rpartition("/")[2]], definitions)
    left = {key: one for key, one in node.items() if key not in {"title", "description", "default"}}
    return {key: _inlined(one, definitions) for key, one in left.items()}


def _require(node: Free, usual: StrictStruct) -> None:
    """Require every field of values.yaml: Helm removes fields that are set to null."""
    node["required"] = [one.encode_name for one in msgspec.structs.fields(usual)]
    for one in msgspec.structs.fields(usual):
        inner = getattr(usual, one.name)
        if is_section(inner):
            _require(node["properties"][one.encode_name], inner)


def _holds(when: Mapping[str, bool]) -> Free:
    """Return a schema that matches objects with all these values."""
    made: dict[str, Any] = {}
    for path, on in when.items():
        section, field = path.split(".")
        inner = made.setdefault(section, {"properties": {}})
        inner["properties"][field] = {"const": on}
    return {"properties": made}
