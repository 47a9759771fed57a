"""What a group's tags say of its next node and of how it wants to be scaled.

    k8s.io/cluster-autoscaler/node-template/label/<key>                = value
    k8s.io/cluster-autoscaler/node-template/taint/<key>                = value:effect
    k8s.io/cluster-autoscaler/node-template/resources/<name>           = quantity
    k8s.io/cluster-autoscaler/node-template/autoscaling-options/<name> = value
    k8s.io/cluster-autoscaler/node-template/csi-driver/<driver>        = count, or none

The last is ours, the others are Cluster Autoscaler's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bayplan.autoscaler.providers.aws.kinds import Tag
from bayplan.autoscaler.providers.texts import (
    read_amounts,
    read_labels,
    read_options,
    read_taint,
)
from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import Taint
from bayplan.nodegroups.templates import Limits, limits_of

_TEMPLATE = "k8s.io/cluster-autoscaler/node-template/"
LABEL, TAINT, RESOURCE, OPTION, DRIVER = (
    f"{_TEMPLATE}{word}/"
    for word in ("label", "taint", "resources", "autoscaling-options", "csi-driver")
)


@dataclass(frozen=True, slots=True)
class Said:
    """What tags say, and what of it cannot be read."""

    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unread_taints: tuple[str, ...]
    amounts: Mapping[str, Quantity]
    options: Mapping[str, float | bool]
    limits: Limits
    unread_limits: frozenset[str]
    """Drivers whose limit cannot be read: nobody counts on them, whatever their type says."""
    problems: tuple[str, ...]


def read_tags(tags: Sequence[Tag]) -> Said:
    """All that tags say."""
    labels, wrong_labels = read_labels(_under(tags, LABEL).items(), f"tag {LABEL[:-1]}")
    taints, wrong_taints = _taints(_under(tags, TAINT))
    resources = _under(tags, RESOURCE)
    places = {name: f"tag {RESOURCE}{name}" for name in resources}
    amounts, wrong_amounts = read_amounts(resources, places)
    options, wrong_options = read_options(_under(tags, OPTION), f"tag {OPTION}")
    drivers = _under(tags, DRIVER)
    limits, wrong_limits = limits_of(drivers, f"tag {DRIVER}")
    problems = (*wrong_labels, *wrong_taints, *wrong_amounts, *wrong_options, *wrong_limits)
    return Said(
        labels,
        tuple(taints),
        tuple(wrong_taints),
        amounts,
        options,
        limits,
        frozenset(drivers) - limits.keys(),
        problems,
    )


def _under(tags: Sequence[Tag], prefix: str) -> dict[str, str]:
    found = {one.key.removeprefix(prefix): one.value for one in tags if one.key.startswith(prefix)}
    return {name: value.strip() for name, value in found.items() if name}


def _taints(said: Mapping[str, str]) -> tuple[list[Taint], list[str]]:
    found: list[Taint] = []
    problems: list[str] = []
    for key, text in said.items():
        value, _, effect = text.rpartition(":")
        taint, wrong = read_taint(key, value, effect, f"tag {TAINT}{key}")
        found += [taint] if taint is not None else []
        problems += wrong
    return found, problems
