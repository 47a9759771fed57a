"""Label selectors as they stand inside objects (`matchLabels`, `matchExpressions`)."""

from __future__ import annotations

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.kube.meta import LabelSelector
from bayplan.kube.selectors.labels import compile_selector
from bayplan.kube.selectors.requirement import SelectorError


def select(selector: JsonObject, labels: dict[str, str]) -> bool:
    """Whether labels meet a selector; an empty one selects everything, a broken one nothing."""
    try:
        compiled = compile_selector(msgspec.convert(selector, LabelSelector))
    except (msgspec.ValidationError, SelectorError):
        return False
    return compiled.matches(labels)
