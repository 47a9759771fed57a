"""Deprecated names in results and reports: written beside the new ones, and read.

To end the support of a name, remove its entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")

OLD_FIGURES = {"nodesAdded": "nodesBought"}
OLD_SERIES = {"scaling/added": "scaling/bought"}
OLD_EVENTS = {"added": "bought"}
"""The deprecated names by their new names."""

OLD_EVENT_FIELD = "deprecatedWhat"
"""The field of an event, and the column of events.csv, with the deprecated value of `what`."""


def with_old_names(values: Mapping[str, T], old_names: Mapping[str, str]) -> dict[str, T]:
    """Return the values, those of renamed ones also by their old names."""
    return {**values, **{old: values[new] for new, old in old_names.items() if new in values}}


def use_new_names(document: Any) -> None:
    """Rename figures, series and events with old names in a decoded report or result, in place."""
    if not isinstance(document, dict):
        return
    for field, old_names in (
        ("figures", OLD_FIGURES),
        ("differences", OLD_FIGURES),
        ("series", OLD_SERIES),
    ):
        if isinstance(values := document.get(field), dict):
            _rename_keys(values, old_names)
    for event in _objects(document, "events"):
        for new, old in OLD_EVENTS.items():
            if event.get("what") == old:
                event["what"] = new
    for field in ("variants", "runs"):
        for one in _objects(document, field):
            use_new_names(one)


def _rename_keys(values: dict[str, Any], old_names: Mapping[str, str]) -> None:
    for new, old in old_names.items():
        if old in values:
            value = values.pop(old)
            values.setdefault(new, value)


def _objects(document: dict[str, Any], field: str) -> list[dict[str, Any]]:
    """Return the JSON objects in a list; an invalid document fails later, when it is converted."""
    found = document.get(field)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
