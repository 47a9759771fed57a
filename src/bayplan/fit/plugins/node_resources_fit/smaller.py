"""A pod that asks for at most so much, changed as little as will do.

What a pod asks for is the larger of its containers' sum and what its init containers need one at a
time, plus overhead, or what it says for the pod as a whole. The largest container gives way first.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from msgspec.structs import replace

from bayplan.fit import amounts
from bayplan.kube.pods import Container, Pod, PodSpec
from bayplan.kube.quantity import Style, format_amount, milli_value
from bayplan.kube.requests import pod_requests, requests_with_defaults
from bayplan.kube.resources import CPU


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
    room = ceiling - milli_value(spec.overhead.get(name, 0))
    if spec.resources is not None and name in {**spec.resources.limits, **spec.resources.requests}:
        requests = {**spec.resources.requests, name: _written(name, room)}
        return replace(spec, resources=replace(spec.resources, requests=requests))
    sidecars = [c for c in spec.init_containers if c.restart_policy == "Always"]
    together = _cut([*spec.containers, *sidecars], name, room)
    return replace(
        spec,
        containers=together[: len(spec.containers)],
        init_containers=_initialising(spec, together[len(spec.containers) :], name, room),
    )


def _cut(containers: list[Container], name: str, room: int) -> list[Container]:
    """Containers that ask for `room` at most together; the largest gives way first."""
    amounts = [_millis(container, name) for container in containers]
    excess = sum(amounts) - room
    for index in sorted(range(len(amounts)), key=lambda i: -amounts[i]):
        if excess <= 0:
            break
        given = min(excess, amounts[index])
        amounts[index] -= given
        excess -= given
    return [_asking(c, name, a) for c, a in zip(containers, amounts, strict=True)]


def _initialising(
    spec: PodSpec, sidecars: list[Container], name: str, room: int
) -> list[Container]:
    """The init containers, each small enough beside the sidecars that run before it."""
    left, changed, running = iter(sidecars), [], 0
    for container in spec.init_containers:
        if container.restart_policy == "Always":
            changed.append(next(left))
            running += _millis(changed[-1], name)
        else:
            most = max(min(_millis(container, name), room - running), 0)
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
