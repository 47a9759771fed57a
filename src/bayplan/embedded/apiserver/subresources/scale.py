"""Scale: how many replicas a workload wants and has, in one small object of its own kind."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import invalid
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.kinds.fields import value_at
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.validation.causes import bad_value

_BUILTIN = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
}


def _paths(kind: Kind) -> dict[str, str]:
    return (kind.custom.scale if kind.custom is not None else None) or _BUILTIN


def scale_of(kind: Kind, obj: JsonObject) -> JsonObject:
    """The scale of a workload."""
    paths, meta = _paths(kind), obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: JsonObject = {"replicas": _read(obj, paths["statusReplicasPath"]) or 0}
    selector = _selector(obj, paths.get("labelSelectorPath"), kind.custom is not None)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": {"replicas": _read(obj, paths["specReplicasPath"]) or 0},
        "status": status,
    }


def with_scale(kind: Kind, obj: JsonObject, scale: JsonObject) -> JsonObject:
    """The workload with the wanted number of replicas."""
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if type(replicas) is not int or not 0 <= replicas < 2**31:
        why = "must be greater than or equal to 0"
        problem = bad_value("spec.replicas", replicas, why)
        raise invalid("autoscaling", "Scale", obj["metadata"]["name"], [problem])
    *parents, last = _paths(kind)["specReplicasPath"].lstrip(".").split(".")
    inner = obj
    for name in parents:
        inner = inner.setdefault(name, {})
    inner[last] = replicas
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        obj["metadata"]["resourceVersion"] = version
    return obj


def _read(obj: JsonObject, path: str) -> JsonValue:
    return value_at(obj, path.lstrip("."))


def _selector(obj: JsonObject, path: str | None, custom: bool) -> str:
    if custom:
        return str(_read(obj, path) or "") if path else ""
    selector = (obj.get("spec") or {}).get("selector") or {}
    parts = [f"{key}={value}" for key, value in _match_labels(selector).items()]
    parts += [_expression(one) for one in selector.get("matchExpressions") or ()]
    return ",".join(parts)


def _match_labels(selector: JsonObject) -> JsonObject:
    if "matchLabels" in selector or "matchExpressions" in selector:
        return selector.get("matchLabels") or {}
    return selector


def _expression(expression: JsonObject) -> str:
    key, operator = str(expression.get("key", "")), str(expression.get("operator", ""))
    values = ",".join(expression.get("values") or ())
    texts = {
        "In": f"{key} in ({values})",
        "NotIn": f"{key} notin ({values})",
        "Exists": key,
        "DoesNotExist": f"!{key}",
    }
    return texts.get(operator, key)
