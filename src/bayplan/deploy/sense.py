"""Values that people say: whether they have their shape, and make sense together.

`read` refuses what a daemon or the API server would refuse once it is too late, by the path of the
value; `schema` says the same to Helm, as far as a JSON schema can.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec
from msgspec import UNSET

from bayplan.base.configfiles import ConfigFileError, FieldProblem, parse, refuse_unknown, shaped
from bayplan.deploy.values import Values, Workload, find, layered
from bayplan.deploy.words import END, Free, Strict, Toleration, is_section
from bayplan.kube.attachtables import OwnLimits, check_own_limits
from bayplan.kube.pods import Affinity
from bayplan.kube.quantity import parse as amount


@dataclass(frozen=True, slots=True)
class Clash:
    """Values that must not all hold at once; the first is the one that is named."""

    when: Mapping[str, bool]
    why: str


CLASHES = (
    Clash(
        {"nodeLimits.enabled": True, "nodeAgent.enabled": True, "nodeAgent.limits": True},
        "both would publish the same keys of every node, and where their tables differ each would"
        " undo the other's: say nodeAgent.limits=false, or leave one of them out",
    ),
    Clash(
        {"nodeAgent.enabled": True, "nodeAgent.limits": False, "nodeAgent.images": False},
        "the agent would have nothing to do: say nodeAgent.limits or nodeAgent.images",
    ),
    Clash(
        {"autoscaler.clusterApi": True, "autoscaler.enabled": False},
        "there is no autoscaler that it could be granted to",
    ),
)


def read(said: Free) -> Values:
    """What somebody says over what is usual; FieldProblem for what cannot be."""
    whole = layered(msgspec.to_builtins(Values()), said)
    for path in _taken_away(whole, Values()):
        raise FieldProblem(path, "null takes it away, and it has to be there")
    values = shaped(whole, Values)
    _check(values)
    return values


def refuse_clashes(values: Values) -> None:
    """FieldProblem for values that do not go together."""
    for clash in CLASHES:
        if all(find(values, path) is on for path, on in clash.when.items()):
            raise FieldProblem(next(iter(clash.when)), clash.why)


def schema() -> Free:
    """values.yaml's JSON schema, self-contained, as Helm checks it over the chart's own values."""
    made = msgspec.json.schema(Values)
    whole = cast("Free", _inlined(made["$defs"][Values.__name__], made["$defs"]))
    _require(whole, Values())
    # Helm adds a field of its own.
    whole["properties"]["global"] = {"type": "object"}
    whole["allOf"] = [{"not": _holds(clash.when)} for clash in CLASHES]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **whole}


def _taken_away(whole: object, usual: Strict, above: str = "") -> Iterator[str]:
    """Fields that a null has removed."""
    for one in msgspec.structs.fields(usual) if isinstance(whole, dict) else ():
        path, inner = f"{above}{one.encode_name}", getattr(usual, one.name)
        if one.encode_name not in cast("Free", whole):
            yield path
        elif is_section(inner):
            yield from _taken_away(cast("Free", whole)[one.encode_name], inner, f"{path}.")


def _check(values: Values) -> None:
    """FieldProblem for what has its shape and yet cannot be."""
    _check_address(values.listen_address)
    _check_limits(values.node_limits.limits)
    for one in msgspec.structs.fields(values):
        held = getattr(values, one.name)
        if isinstance(held, Workload):
            _check_amounts(held, f"{one.encode_name}.resources")
            for at, toleration in enumerate(held.tolerations):
                _check_toleration(toleration, f"{one.encode_name}.tolerations[{at}]")
            affinity, path = msgspec.to_builtins(held.affinity), f"{one.encode_name}.affinity"
            refuse_unknown(affinity, Affinity, path)
            shaped(affinity, Affinity, path)


def _check_address(said: str) -> None:
    try:
        address = ipaddress.ip_address(said.strip("[]"))
    except ValueError:
        raise FieldProblem("listenAddress", f"{said!r} is no address") from None
    if address.is_loopback:
        raise FieldProblem("listenAddress", f"{said} is out of reach of probes and of Prometheus")


def _check_limits(text: str) -> None:
    field = "nodeLimits.limits"
    try:
        check_own_limits(parse(text.encode(), "line", OwnLimits).value)
    except (ConfigFileError, FieldProblem) as error:
        raise FieldProblem(field, str(error)) from None


def _check_amounts(workload: Workload, path: str) -> None:
    most = workload.resources.limits or {}
    for name, asked in (workload.resources.requests or {}).items():
        if name in most and amount(asked) > amount(most[name]):
            said = f"{asked} is more than the limit, {most[name]}"
            raise FieldProblem(f"{path}.requests.{name}", said)


def _check_toleration(one: Toleration, path: str) -> None:
    """What the API server refuses of the pods, when nobody looks any more."""
    if one.operator == "Exists" and one.value:
        raise FieldProblem(f"{path}.value", "there is none with operator Exists")
    if one.operator != "Exists" and not one.key:
        raise FieldProblem(f"{path}.operator", "must be Exists where there is no key")
    if one.toleration_seconds is not UNSET and one.effect != "NoExecute":
        raise FieldProblem(f"{path}.effect", "must be NoExecute where there are tolerationSeconds")


def _inlined(node: object, definitions: Free) -> object:
    """A schema without references; what is to be said of fields is in values.yaml."""
    if isinstance(node, list):
        return [_inlined(one, definitions) for one in node]
    if not isinstance(node, dict):
        return node.replace(END, "$") if isinstance(node, str) else node
    if "$ref" in node:
        return _inlined(definitions[str(node["$ref"]).rpartition("/")[2]], definitions)
    left = {key: one for key, one in node.items() if key not in {"title", "description", "default"}}
    return {key: _inlined(one, definitions) for key, one in left.items()}


def _require(node: Free, usual: Strict) -> None:
    """All that values.yaml has must stay; Helm takes away what somebody says is null."""
    node["required"] = [one.encode_name for one in msgspec.structs.fields(usual)]
    for one in msgspec.structs.fields(usual):
        inner = getattr(usual, one.name)
        if is_section(inner):
            _require(node["properties"][one.encode_name], inner)


def _holds(when: Mapping[str, bool]) -> Free:
    """A schema for what has all these values."""
    made: dict[str, Any] = {}
    for path, on in when.items():
        section, field = path.split(".")
        inner = made.setdefault(section, {"properties": {}})
        inner["properties"][field] = {"const": on}
    return {"properties": made}
