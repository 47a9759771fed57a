"""What nodes and pods cost, from prices by the hour.

A pod's price is its share of the machine on which it comes cheapest, counted by whichever resource
it takes most of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from bayplan.kube.meta import Quantity
from bayplan.kube.pods import Pod
from bayplan.kube.quantity import parse
from bayplan.kube.requests import pod_requests
from bayplan.kube.resources import CPU
from bayplan.nodegroups.errors import InvalidRequestError, NotFoundError


@dataclass(frozen=True, slots=True)
class Machine:
    """What a machine costs an hour, and what there is on it."""

    price: float
    allocatable: Mapping[str, Quantity]


def hours(start: datetime, end: datetime) -> float:
    """How many hours lie between; InvalidRequestError if the end is before the start."""
    if end < start:
        raise InvalidRequestError("the end is before the start")
    return (end - start).total_seconds() / 3600


def pod_price(pod: Pod, machines: Iterable[Machine]) -> float:
    """What a pod costs an hour; NotFoundError if no machine has all that it asks for."""
    wanted = pod_requests(pod)
    shares = ((one.price, _share(wanted, one.allocatable)) for one in machines)
    prices = [price * float(share) for price, share in shares if share is not None]
    if not prices:
        raise NotFoundError("no instance type has all the resources that the pod asks for")
    return min(prices)


def _share(wanted: Mapping[str, int], allocatable: Mapping[str, Quantity]) -> Fraction | None:
    """The share of a machine by the resource taken most of; None if it lacks one altogether."""
    most = Fraction(0)
    for name, amount in wanted.items():
        if not amount:
            continue
        has = parse(allocatable.get(name, 0)) * (1000 if name == CPU else 1)
        if not has:
            return None
        most = max(most, Fraction(amount) / has)
    return most
