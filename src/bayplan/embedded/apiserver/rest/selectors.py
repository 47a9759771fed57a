"""Label and field selectors: as they stand in a query string, and inside objects."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from bayplan.embedded.apiserver.errors import bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.fields import ALWAYS
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.rest.requirements import LabelRequirements
from bayplan.embedded.apiserver.store.entry import Entry
from bayplan.embedded.apiserver.validation.names import path_segment
from bayplan.kube.meta import LabelSelector
from bayplan.kube.selectors.labels import compile_selector
from bayplan.kube.selectors.requirement import SelectorError

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_FIELD_SPLIT = re.compile(r"(?<!\\),")
_FIELD_OPERATORS = re.compile(r"!=|==|=")


ANY_LABELS = LabelRequirements()


class Requirement(NamedTuple):
    """What one field must be, or must not be."""

    key: str
    equal: bool
    values: frozenset[str]

    def holds(self, value: str | None) -> bool:
        """Whether a field's value is as required; one that is not there is empty."""
        return ((value or "") in self.values) == self.equal


_UNSET = {
    "spec.unschedulable": "false",
    "spec.hostNetwork": "false",
    "status.successful": "0",
    "status.replicas": "0",
}
"""What fields are selected by that nobody has set, where that is not the empty text."""


class Selector(NamedTuple):
    """Which objects a list or a watch is about."""

    namespace: str = ""
    name: str = ""
    labels: LabelRequirements = ANY_LABELS
    fields: tuple[Requirement, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether nothing but the namespace narrows it."""
        return not (self.labels or self.fields or self.name)

    def matches(self, entry: Entry) -> bool:
        """Whether an object is selected."""
        key = entry.key
        if self.namespace and key.namespace != self.namespace:
            return False
        if self.name and key.name != self.name:
            return False
        if self.labels and not self.labels.hold(entry.labels):
            return False
        return not self.fields or self._fields_match(entry)

    def _fields_match(self, entry: Entry) -> bool:
        for requirement in self.fields:
            key = requirement.key
            if key == "metadata.name":
                value: str | None = entry.key.name
            elif key == "metadata.namespace":
                value = entry.key.namespace
            else:
                value = entry.fields.get(key, _UNSET.get(key))
            if not requirement.holds(value):
                return False
        return True


def parse_fields(text: str, kind: Kind) -> tuple[Requirement, ...]:
    """Read `spec.nodeName=a,status.phase!=Running`; only the known fields can be selected by.

    What is required of one field is put together, however often it is said.
    """
    together: dict[tuple[str, bool], frozenset[str]] = {}
    for part in _FIELD_SPLIT.split(text):
        if not part:
            continue
        key, equal, value = _term(part, text, kind)
        values = together.get((key, equal))
        if values is None:
            together[key, equal] = frozenset((value,))
        elif equal:
            together[key, equal] = values & {value}
        else:
            together[key, equal] = values | {value}
    return tuple(Requirement(*mark, values) for mark, values in together.items())


def the_one_name(text: str) -> str:
    """The name of the one object that a field selector leaves, or empty if it does not say."""
    for part in _FIELD_SPLIT.split(text):
        key, equal, value = _split(part)
        if key == "metadata.name" and equal:
            return "" if path_segment(value) else value
    return ""


def _term(part: str, whole: str, kind: Kind) -> tuple[str, bool, str]:
    key, equal, value = _split(part)
    if equal is None:
        raise bad_request(f"invalid selector: '{whole}'; can't understand '{part}'")
    if key not in ALWAYS and key not in kind.fields:
        raise bad_request(_unselectable(key, kind))
    return key, equal, value


def _split(part: str) -> tuple[str, bool | None, str]:
    """A field, whether it must be equal, and to what; None if the text does not say."""
    found = _FIELD_OPERATORS.search(part)
    if found is None:
        return part, None, ""
    value = _ESCAPED.sub(r"\1", part[found.end() :])
    return part[: found.start()], found[0] != "!=", value


def _unselectable(field: str, kind: Kind) -> str:
    if kind.storage == "jobs.batch":
        return f'field label "{field}" not supported for Job'
    if kind.fields or kind.custom is not None:
        return f"field label not supported: {field}"
    known = ", ".join(f'"{name}"' for name in ALWAYS)
    return f'"{field}" is not a known field selector: only {known}'


def select(selector: JsonObject, labels: dict[str, str]) -> bool:
    """Whether labels meet a selector inside an object (`matchLabels`, `matchExpressions`).

    An empty one selects everything, a broken one nothing.
    """
    try:
        compiled = compile_selector(msgspec.convert(selector, LabelSelector))
    except (msgspec.ValidationError, SelectorError):
        return False
    return compiled.matches(labels)
