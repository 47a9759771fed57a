"""What a program in another process answers, checked: strangers write such programs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, replace

import msgspec

from bayplan.kube.nodes import Node
from bayplan.kube.validation import validate
from bayplan.nodegroups.errors import InvalidRequestError, NodeGroupError
from bayplan.nodegroups.values import GroupOptions, GroupProblem, NodeGroup


def sound_groups(groups: Iterable[NodeGroup]) -> tuple[list[NodeGroup], list[GroupProblem]]:
    """Groups that can be scaled, each once, and what is wrong with the others."""
    found: dict[str, NodeGroup] = {}
    problems: list[GroupProblem] = []
    for one in groups:
        if not one.id:
            continue
        if one.id in found:
            problems.append(GroupProblem(one.id, "the cloud has two groups of that id"))
        elif not 0 <= one.min_size <= one.max_size:
            said = f"its size cannot be between {one.min_size} and {one.max_size}"
            problems.append(GroupProblem(one.id, said))
        else:
            found[one.id] = one
    return list(found.values()), problems


def sound_size(group: str, size: int) -> int:
    """A size that a group can have."""
    if size < 0:
        raise NodeGroupError(f"node group {group}: it cannot be meant to have {size} instances")
    return size


def sound_price(price: float) -> float:
    """A price that something can have."""
    if not math.isfinite(price) or price < 0:
        raise NodeGroupError(f"{price} is no price")
    return price


def sound_node(group: str, node: Node) -> Node:
    """A node that can be planned with; InvalidRequestError if it cannot."""
    if not node.name:
        named = msgspec.structs.replace(node.metadata, name=f"template-node-for-{group}"[:250])
        node = msgspec.structs.replace(node, metadata=named)
    problem = validate(node)
    if problem is not None:
        raise InvalidRequestError(f"node group {group}: its template cannot be used: {problem}")
    return node


def sound_options(options: GroupOptions, defaults: GroupOptions) -> GroupOptions:
    """Options, of which each that makes no sense is the default."""
    usual = asdict(defaults)
    odd = {name: usual[name] for name, said in asdict(options).items() if not _is_sound(name, said)}
    return replace(options, **odd)


def _is_sound(name: str, said: float | bool) -> bool:
    if name.endswith("_threshold"):
        return 0 <= said <= 1
    return math.isfinite(said) and said >= 0
