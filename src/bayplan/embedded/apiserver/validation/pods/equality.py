"""Whether two specs say the same: an amount is the same however it is spelled."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.kube.quantity import QuantityError
from bayplan.kube.quantity import parse as amount

_AMOUNTS = ("limits", "requests", "overhead")


def same_spec(one: JsonObject, other: JsonObject) -> bool:
    """Whether two specs, or two parts of specs, say the same."""
    return one == other or _plain(one) == _plain(other)


def _plain(value: JsonValue, name: str = "") -> JsonValue:
    if isinstance(value, dict):
        if name in _AMOUNTS:
            return {key: _amount(item) for key, item in value.items()}
        kept = ((key, _plain(item, key)) for key, item in value.items())
        return {key: item for key, item in kept if item not in (None, [])}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _amount(value: JsonValue) -> JsonValue:
    try:
        return amount(value)
    except QuantityError:
        return value
