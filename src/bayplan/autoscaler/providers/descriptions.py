"""Nodes that are not there yet, from what clouds say of them in tags and annotations.

Clouds say labels, taints, amounts and options as text. Every reader gives what it could read, and a
line for each thing that it could not, as text that names the place. Nothing that cannot be read
counts.
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
"""Annotation of a template: the group that it is of."""
MAX_PODS = 110
"""What a kubelet takes unless it is told otherwise."""
_LONGEST_NAME = 200
_NOT_OF_NAMES = re.compile(r"[^a-z0-9.-]+")


def described_node(
    group: str,
    labels: Mapping[str, str],
    taints: Iterable[Taint],
    amounts: Mapping[str, Quantity],
    *,
    annotations: Mapping[str, str] | None = None,
) -> Node:
    """A node of a group, ready and empty."""
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
    """Taints, of which each key and effect is there once; the later ones count."""
    merged = {(one.key, one.effect): one for one in (*taints, *over)}
    return list(merged.values())


EFFECTS: tuple[str, ...] = get_args(TaintEffect)
_LONGEST = 100
_TRUE, _FALSE = {"1", "t", "true"}, {"0", "f", "false"}
OPTIONS = {field.replace("_", ""): field for field in asdict(GroupOptions())}
"""Options as clouds spell them: the field's name in one word."""


def shown(place: str, text: str, problem: str) -> str:
    """A problem with its place and as much of the text as helps."""
    return f"{place}: {text[:_LONGEST]!r}: {problem}"


def read_labels(pairs: Iterable[tuple[str, str]], place: str) -> tuple[dict[str, str], list[str]]:
    """Labels that are labels."""
    found: dict[str, str] = {}
    problems: list[str] = []
    for key, value in pairs:
        if is_qualified_name(key) and is_label_value(value):
            found[key] = value
        else:
            problems.append(shown(place, f"{key}={value}", "this is no label"))
    return found, problems


def split_pairs(text: str) -> list[tuple[str, str]]:
    """`k=v,k2=v2` in pairs; what has no `=` is a key without a value."""
    entries = filter(None, (part.strip() for part in text.split(",")))
    return [(key.strip(), value.strip()) for key, _, value in (e.partition("=") for e in entries)]


def read_taint(key: str, value: str, effect: str, place: str) -> tuple[Taint | None, list[str]]:
    """A taint that can be one."""
    if not is_qualified_name(key) or not is_label_value(value):
        return None, [shown(place, f"{key}={value}:{effect}", "this is no taint")]
    try:
        return msgspec.convert({"key": key, "value": value, "effect": effect}, Taint), []
    except msgspec.ValidationError:
        said = f"the effect must be one of {', '.join(EFFECTS)}"
        return None, [shown(place, f"{key}={value}:{effect}", said)]


def read_amounts(
    said: Mapping[str, str], place: Mapping[str, str]
) -> tuple[dict[str, Quantity], list[str]]:
    """Amounts by resource, each of which stands at a place of its own."""
    found: dict[str, Quantity] = {}
    problems: list[str] = []
    for name, text in said.items():
        try:
            amounts("", {name: text})
            found[name] = text
        except (FieldError, QuantityError) as error:
            problems.append(shown(place[name], text, str(error)))
    return found, problems


def read_options(said: Mapping[str, str], place: str) -> tuple[dict[str, float | bool], list[str]]:
    """Options by the names of `GroupOptions`; those that nobody knows are let be."""
    found: dict[str, float | bool] = {}
    problems: list[str] = []
    for name, text in said.items():
        field = OPTIONS.get(name.lower())
        if field is None:
            continue
        try:
            found[field] = _option(field, text.strip())
        except ValueError as error:
            problems.append(shown(f"{place}{name}", text, str(error)))
    return found, problems


def options_over(said: Mapping[str, float | bool], options: GroupOptions) -> GroupOptions:
    """Options with those that are said."""
    return msgspec.convert({**asdict(options), **said}, GroupOptions)


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
    """A number without a unit is no duration to Go, but for 0."""
    if int(text):
        raise DurationError("a duration needs a unit, as 90s or 10m")
    return 0.0
