"""Template nodes, from tags and annotations of clouds.

Labels, taints, amounts and options are text there. Every reader returns what it could read, and a
problem with its source for each value that it could not. Unreadable values are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import get_args

import msgspec

from bayplan.base.durations import DurationError, parse_duration
from bayplan.kube.labels import HOSTNAME
from bayplan.kube.meta import Condition, ObjectMeta, Quantity
from bayplan.kube.names import is_label_value, is_qualified_name
from bayplan.kube.nodes import Node, NodeSpec, NodeStatus, Taint, TaintEffect
from bayplan.kube.quantity import QuantityError
from bayplan.kube.resources import PODS
from bayplan.kube.validation.fields import FieldError, amounts
from bayplan.nodegroups import GroupOptions

GROUP = "bayplan.io/node-group"
"""Annotation of a template: its group."""
MAX_PODS = 110
"""The kubelet's default maximum number of pods."""
_LONGEST_NAME = 200
_NOT_OF_NAMES = re.compile(r"[^a-z0-9.-]+")


def template_node(
    group: str,
    labels: Mapping[str, str],
    taints: Iterable[Taint],
    amounts: Mapping[str, Quantity],
    *,
    annotations: Mapping[str, str] | None = None,
) -> Node:
    """Build the template node of a group, ready and empty."""
    name = f"template-node-for-{_NOT_OF_NAMES.sub('-', group.lower())[:_LONGEST_NAME]}"
    held: dict[str, Quantity] = {PODS: MAX_PODS, **amounts}
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(
            name=name,
            labels={HOSTNAME: name, **labels},
            annotations={GROUP: group, **(annotations or {})},
        ),
        spec=NodeSpec(taints=list(taints)),
        status=NodeStatus(
            capacity=held,
            allocatable=dict(held),
            conditions=[Condition(type="Ready", status="True", reason="Template")],
        ),
    )


def merged_taints(taints: Iterable[Taint], over: Iterable[Taint]) -> list[Taint]:
    """Merge taints by key and effect; later ones win."""
    merged = {(one.key, one.effect): one for one in (*taints, *over)}
    return list(merged.values())


EFFECTS: tuple[str, ...] = get_args(TaintEffect)
_LONGEST = 100
_TRUE, _FALSE = {"1", "t", "true"}, {"0", "f", "false"}
OPTIONS = {field.replace("_", ""): field for field in asdict(GroupOptions())}
"""Options as clouds spell them: the field's name without underscores."""


def format_problem(place: str, text: str, problem: str) -> str:
    """Format a problem with its source and the beginning of the text."""
    return f"{place}: {text[:_LONGEST]!r}: {problem}"


def read_labels(pairs: Iterable[tuple[str, str]], place: str) -> tuple[dict[str, str], list[str]]:
    """Return the valid labels, and the problems of the others."""
    found: dict[str, str] = {}
    problems: list[str] = []
    for key, value in pairs:
        if is_qualified_name(key) and is_label_value(value):
            found[key] = value
        else:
            problems.append(format_problem(place, f"{key}={value}", "this is not a label"))
    return found, problems


def split_pairs(text: str) -> list[tuple[str, str]]:
    """Split `k=v,k2=v2` into pairs; an entry without `=` is a key without a value."""
    entries = filter(None, (part.strip() for part in text.split(",")))
    return [(key.strip(), value.strip()) for key, _, value in (e.partition("=") for e in entries)]


def read_taint(key: str, value: str, effect: str, place: str) -> tuple[Taint | None, list[str]]:
    """Return the taint if it is valid, and its problems."""
    if not is_qualified_name(key) or not is_label_value(value):
        return None, [format_problem(place, f"{key}={value}:{effect}", "this is not a taint")]
    try:
        return msgspec.convert({"key": key, "value": value, "effect": effect}, Taint), []
    except msgspec.ValidationError:
        problem = f"the effect must be one of {', '.join(EFFECTS)}"
        return None, [format_problem(place, f"{key}={value}:{effect}", problem)]


def read_amounts(
    values: Mapping[str, str], place: Mapping[str, str]
) -> tuple[dict[str, Quantity], list[str]]:
    """Return the valid amounts by resource, and the problems of the others by their sources."""
    found: dict[str, Quantity] = {}
    problems: list[str] = []
    for name, text in values.items():
        try:
            amounts("", {name: text})
            found[name] = text
        except (FieldError, QuantityError) as error:
            problems.append(format_problem(place[name], text, str(error)))
    return found, problems


def read_options(
    values: Mapping[str, str], place: str
) -> tuple[dict[str, float | bool], list[str]]:
    """Return options by the names of `GroupOptions`; unknown ones are ignored."""
    found: dict[str, float | bool] = {}
    problems: list[str] = []
    for name, text in values.items():
        field = OPTIONS.get(name.lower())
        if field is None:
            continue
        try:
            found[field] = _option(field, text.strip())
        except ValueError as error:
            problems.append(format_problem(f"{place}{name}", text, str(error)))
    return found, problems


def override_options(values: Mapping[str, float | bool], options: GroupOptions) -> GroupOptions:
    """Return the options with some overridden."""
    return msgspec.convert({**asdict(options), **values}, GroupOptions)


def _option(field: str, text: str) -> float | bool:
    if field.endswith("_time"):
        return parse_duration(text) if not text.isdecimal() else _refuse_bare(text)
    if field.endswith("_threshold"):
        share = float(text)
        if not 0 <= share <= 1:
            raise ValueError("must be between 0 and 1")
        return share
    if text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    raise ValueError("must be true or false")


def _refuse_bare(text: str) -> float:
    """Refuse a number without a unit, except 0, as Go does."""
    if int(text):
        raise DurationError("a duration needs a unit, as 90s or 10m")
    return 0.0
