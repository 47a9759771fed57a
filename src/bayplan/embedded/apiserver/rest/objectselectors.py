"""Label selectors as they stand inside objects (`matchLabels`, `matchExpressions`)."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject


def select(selector: JsonObject, labels: dict[str, str]) -> bool:
    """Whether labels meet a selector; an empty selector selects everything."""
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(one, labels) for one in selector.get("matchExpressions") or ())


def _holds(expression: JsonObject, labels: dict[str, str]) -> bool:
    value = labels.get(expression.get("key") or "")
    values = expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False
