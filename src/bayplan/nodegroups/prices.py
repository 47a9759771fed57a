"""Prices of nodes and pods, from hourly prices of instance types.

A pod's price is its share of the instance type on which it is cheapest; its share is that of its
dominant resource.
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
from bayplan.nodegroups.errors import InvalidRequestError, NodeGroupNotFoundError


@dataclass(frozen=True, slots=True)
class InstanceTypePrice:
    """The hourly price of an instance type, and its allocatable resources."""

    price: float
    allocatable: Mapping[str, Quantity]


def hours(start: datetime, end: datetime) -> float:
    """Return the hours between; InvalidRequestError if the end is before the start."""
    if end < start:
        raise InvalidRequestError("the end is before the start")
    return (end - start).total_seconds() / 3600


def pod_price(pod: Pod, types: Iterable[InstanceTypePrice]) -> float:
    """Return a pod's hourly price; NodeGroupNotFoundError if no type has all its resources."""
    requests = pod_requests(pod)
    shares = ((one.price, _share(requests, one.allocatable)) for one in types)
    prices = [price * float(share) for price, share in shares if share is not None]
    if not prices:
        raise NodeGroupNotFoundError("no instance type has all the resources that the pod requests")
    return min(prices)


def _share(requests: Mapping[str, int], allocatable: Mapping[str, Quantity]) -> Fraction | None:
    """Return the share by the dominant resource; None if the type lacks a resource."""
    most = Fraction(0)
    for name, amount in requests.items():
        if not amount:
            continue
        has = parse(allocatable.get(name, 0)) * (1000 if name == CPU else 1)
        if not has:
            return None
        most = max(most, Fraction(amount) / has)
    return most
