"""What is short in numbers, and what would lift it: a smaller request, by exactly as much.

A pod's request is the larger of its containers' sum and what its init containers need one at a
time, plus overhead, or its pod-level requests. The largest container is reduced first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

import numpy as np
from msgspec.structs import replace

from bayplan.fit import amounts
from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Filter
from bayplan.fit.plugins.explanation import (
    ChangedNode,
    Explainer,
    NodeChange,
    Proposal,
    RepairEstimate,
    Trial,
    move_pod,
)
from bayplan.fit.plugins.node_resources_fit.filter import TOO_MANY_PODS, NodeResourcesFit
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import SlotArray
from bayplan.kube.pods import Container, Pod, PodSpec
from bayplan.kube.quantity import Style, format_amount, milli_value
from bayplan.kube.requests import pod_requests, requests_with_defaults
from bayplan.kube.resources import CPU


def reduce_requests(trial: Trial) -> Iterable[Step]:
    """Propose to request what is free of everything that is short, unless nothing is free."""
    resources = trial.filter(NodeResourcesFit)
    if resources is None or TOO_MANY_PODS in trial.refusal.reasons:
        return
    short = resources.shortages(trial.slot)
    asked = pod_requests(trial.pod)
    if not short or any(free <= 0 for _, free in short.values()):
        return
    pod = with_requests_at_most(trial.pod, {name: free for name, (_, free) in short.items()})
    if pod is None:
        return
    described = [_less(name, asked[name], free) for name, (_, free) in short.items()]
    largest = max((asked[name] - free) / asked[name] for name, (_, free) in short.items())
    text, what = f"request {' and '.join(described)}", " and ".join(short)
    yield Step(FixKind.SMALLER_REQUEST, text, 2 + 6 * largest, pod, less_of=what)


def _less(name: str, asked: int, free: int) -> str:
    less = amounts.of(name, asked - free)
    had = amounts.number(name, asked)
    return f"{less} less: {amounts.number(name, free)} instead of {had}"


def _details(trial: Trial) -> list[str]:
    resources = trial.filter(NodeResourcesFit)
    short = resources.shortages(trial.slot) if resources else {}
    return [
        f"wants {amounts.of(name, wanted)}, {amounts.number(name, max(free, 0))} free"
        for name, (wanted, free) in short.items()
    ]


def _estimate_repair(one: Filter, _: Pod, __: ClusterState, slots: SlotArray) -> RepairEstimate:
    """All nodes are one group; the larger the missing share of the request, the higher the cost."""
    shares = (
        one.missing_shares(slots) if isinstance(one, NodeResourcesFit) else np.zeros(len(slots))
    )
    return RepairEstimate(2.0 + np.minimum(6.0 * shares, 1.5 + shares / 10))


def _bigger(trial: Trial) -> ChangedNode | None:
    """Return the node with enough of what even an empty one of its kind has too little of."""
    resources = trial.filter(NodeResourcesFit)
    short = resources.shortages(trial.slot) if resources else {}
    if not short:
        return None
    columns, has = trial.cluster.resources.columns, trial.cluster.resources.allocatable[trial.slot]
    enough = {
        name: _whole(name, int(has[columns[name]]) + wanted - free)
        for name, (wanted, free) in short.items()
    }
    sizes = {name: _rounded(name, amount) for name, amount in enough.items()}
    node = trial.node
    status = replace(node.status, allocatable={**node.status.allocatable, **sizes})
    described = " and ".join(amounts.of(name, amount) for name, amount in enough.items())
    return ChangedNode(replace(node, status=status), f", but bigger: with {described}")


def _whole(resource: str, amount: int) -> int:
    """The next whole CPU, or GiB, above an amount."""
    unit = 1000 if resource == CPU else 2**30 if amounts.is_in_bytes(resource) else 1
    return -(-amount // unit) * unit


def _rounded(resource: str, amount: int) -> str:
    if resource == CPU:
        return str(amount // 1000)
    return format_amount(amount, Style.BINARY if amounts.is_in_bytes(resource) else Style.DECIMAL)


EXPLAINER = Explainer(
    details=_details,
    proposals=(Proposal(reduce_requests), Proposal(move_pod, tries=True)),
    new_node=NodeChange(_bigger, FixKind.ADD_BIGGER_NODE, 6.0),
    estimate_repair=_estimate_repair,
)


# -- a smaller request -----------------------------------------------------------------------------


def with_requests_at_most(pod: Pod, ceilings: Mapping[str, int]) -> Pod | None:
    """The pod with smaller requests (cpu in thousandths, else whole units); None if that cannot
    be done by its requests.
    """
    spec = pod.spec
    for name, ceiling in ceilings.items():
        spec = _lowered(spec, name, ceiling if name == CPU else ceiling * 1000)
    smaller = replace(pod, spec=spec)
    asked = pod_requests(smaller)
    enough = all(0 < asked.get(name, 0) <= ceiling for name, ceiling in ceilings.items())
    return smaller if enough else None


def _lowered(spec: PodSpec, name: str, ceiling: int) -> PodSpec:
    """The spec with at most `ceiling` thousandths of a resource."""
    ceiling_left = ceiling - milli_value(spec.overhead.get(name, 0))
    if spec.resources is not None and name in {**spec.resources.limits, **spec.resources.requests}:
        requests = {**spec.resources.requests, name: _written(name, ceiling_left)}
        return replace(spec, resources=replace(spec.resources, requests=requests))
    sidecars = [c for c in spec.init_containers if c.restart_policy == "Always"]
    together = _cut([*spec.containers, *sidecars], name, ceiling_left)
    return replace(
        spec,
        containers=together[: len(spec.containers)],
        init_containers=_initialising(spec, together[len(spec.containers) :], name, ceiling_left),
    )


def _cut(containers: list[Container], name: str, ceiling_left: int) -> list[Container]:
    """Return containers that request `room` at most together; the largest is reduced first."""
    amounts = [_millis(container, name) for container in containers]
    excess = sum(amounts) - ceiling_left
    for index in sorted(range(len(amounts)), key=lambda i: -amounts[i]):
        if excess <= 0:
            break
        given = min(excess, amounts[index])
        amounts[index] -= given
        excess -= given
    return [_asking(c, name, a) for c, a in zip(containers, amounts, strict=True)]


def _initialising(
    spec: PodSpec, sidecars: list[Container], name: str, ceiling_left: int
) -> list[Container]:
    """The init containers, each small enough beside the sidecars that run before it."""
    left, changed, running = iter(sidecars), [], 0
    for container in spec.init_containers:
        if container.restart_policy == "Always":
            changed.append(next(left))
            running += _millis(changed[-1], name)
        else:
            most = max(min(_millis(container, name), ceiling_left - running), 0)
            changed.append(_asking(container, name, most))
    return changed


def _asking(container: Container, name: str, millis: int) -> Container:
    if _millis(container, name) == millis:
        return container
    requests = {**container.resources.requests, name: _written(name, millis)}
    return replace(container, resources=replace(container.resources, requests=requests))


def _millis(container: Container, name: str) -> int:
    return requests_with_defaults(container.resources).get(name, 0)


def _written(name: str, millis: int) -> str:
    style = Style.BINARY if amounts.is_in_bytes(name) else Style.DECIMAL
    return format_amount(Fraction(millis, 1000), style)
