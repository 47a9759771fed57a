"""Expanders that look at nothing but the candidates: each keeps those that are equally good."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from bayplan.autoscaler.candidates import Candidate
from bayplan.fit.batches import Group
from bayplan.kube.quantity import milli_value
from bayplan.kube.resources import CPU, MEMORY

Key = Callable[[Candidate], Fraction | float]


def least(candidates: Sequence[Candidate], key: Key) -> list[Candidate]:
    """The candidates of which something is least."""
    keys = [key(one) for one in candidates]
    return [one for one, size in zip(candidates, keys, strict=True) if size == min(keys)]


def pods_of(candidate: Candidate) -> list[tuple[Group, int]]:
    """The groups that a candidate's new nodes would help, and how many pods of each."""
    found = candidate.option.estimate
    return [(one, count) for one, count in zip(found.groups, found.helped, strict=True) if count]


def most_pods(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that help the most pods."""
    return least(candidates, lambda one: -one.option.estimate.pods)


def least_nodes(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that take the fewest nodes."""
    return least(candidates, lambda one: one.nodes)


def least_waste(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those of whose cpu and memory the smallest part is left unused, both counting alike."""
    return least(candidates, wasted)


def wasted(one: Candidate) -> Fraction:
    """The part of all cpu that pods leave unused, and that of all memory, added."""
    capacity = one.template.node.status.capacity or one.template.node.status.allocatable
    has = {name: milli_value(capacity.get(name, 0)) * one.nodes for name in (CPU, MEMORY)}
    asked = {
        CPU: _requested(one, CPU),
        MEMORY: 1000 * _requested(one, MEMORY),
    }
    return sum((_part(has[name] - asked[name], has[name]) for name in has), Fraction())


def _part(left: int, has: int) -> Fraction:
    """What is left of what there is; all, if there is nothing."""
    return Fraction(left, has) if has else Fraction(1)


def _requested(one: Candidate, resource: str) -> int:
    return sum(group.shape.requests.get(resource, 0) * count for group, count in pods_of(one))
