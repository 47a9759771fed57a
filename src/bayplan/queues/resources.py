"""Amounts of resources, in the units that queues count in.

Cpu is in thousandths, memory in bytes, pods are counted, and every other resource is in thousandths
too. A value names some resources; `rest` is what all the others have: nothing in an amount, no
limit in a limit. So `Resources({"cpu": 4000})` is four cores of cpu and nothing else, and
`Resources({"cpu": 4000}, rest=inf)` is a limit of four cores with all else unlimited.

Values are never changed. Whole numbers stay whole, so that what is added and taken away again
leaves no dust; only shares by weight are fractions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf

import msgspec

from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.quantity import (
    MAX_INT64,
    QuantityError,
    Style,
    format_amount,
    milli_value,
    parse,
    value,
)
from bayplan.kube.requests import pod_requests
from bayplan.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_attach_limit, is_scalar

_COUNT_QUOTA = "count/"
DUST = 0.1
"""Less than this is nothing."""


class Resources(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Amounts by resource; resources that are not named have `rest`."""

    amounts: Mapping[str, float] = {}
    rest: float = 0

    def __getitem__(self, name: str) -> float:
        return self.amounts.get(name, self.rest)

    def __iter__(self) -> Iterator[str]:
        return iter(self.amounts)

    def __eq__(self, other: object) -> bool:
        """Whether every resource has the same amount, named or not."""
        if not isinstance(other, Resources) or self.rest != other.rest:
            return False
        return all(self[name] == other[name] for name in self._names(other))

    def __ne__(self, other: object) -> bool:
        return not self == other  # a Struct's own is true for any two

    def __hash__(self) -> int:
        said = frozenset(one for one in self.amounts.items() if one[1] != self.rest)
        return hash((said, self.rest))

    def __add__(self, other: Resources) -> Resources:
        if not other.amounts and not other.rest:
            return self
        if not self.amounts and not self.rest:
            return other
        if self.rest or other.rest:
            sums = {name: self[name] + other[name] for name in self._names(other)}
            return Resources(sums, self.rest + other.rest)
        sums = dict(self.amounts)
        for name, amount in other.amounts.items():
            sums[name] = sums.get(name, 0) + amount
        return Resources(sums)

    def __sub__(self, other: Resources) -> Resources:
        if not other.amounts:
            return self
        left = dict(self.amounts)
        for name, amount in other.amounts.items():
            left[name] = left.get(name, self.rest) - amount
        return Resources(left, self.rest)

    def beyond(self, other: Resources) -> Resources:
        """Return this minus the other, at least zero for each resource."""
        amounts = {n: max(self[n] - other[n], 0) for n in self._names(other)}
        return Resources(amounts, self.rest if not other.rest else 0)

    def least(self, other: Resources) -> Resources:
        """Return the smaller amount of each resource."""
        amounts = {n: min(self[n], other[n]) for n in self._names(other)}
        return Resources(amounts, min(self.rest, other.rest))

    def most(self, other: Resources) -> Resources:
        """Return the larger amount of each resource."""
        amounts = {n: max(self[n], other[n]) for n in self._names(other)}
        return Resources(amounts, max(self.rest, other.rest))

    def times(self, factor: float) -> Resources:
        """Return the amounts multiplied by a factor."""
        amounts = {name: amount * factor for name, amount in self.amounts.items()}
        return Resources(amounts, self.rest * factor if self.rest else 0)

    @property
    def is_nothing(self) -> bool:
        """Whether all amounts except `pods` are zero."""
        if self.rest:
            return False
        return all(amount < DUST or name == PODS for name, amount in self.amounts.items())

    def fits(self, room: Resources) -> bool:
        """Whether every amount, `pods` included, is at most the other."""
        names = self._names(room)
        return all(self[name] < room[name] + DUST for name in names) and self.rest <= room.rest

    def since(self, old: Resources) -> Resources:
        """Return the difference from an older amount."""
        if self is old:
            return NOTHING
        mine, other = self.amounts, old.amounts
        change = {n: a - other.get(n, 0) for n, a in mine.items() if a != other.get(n, 0)}
        for name, amount in other.items():
            if name not in mine and amount:
                change[name] = -amount
        return Resources(change) if change else NOTHING

    def over(self, limit: Resources, asked: Iterable[str]) -> list[str]:
        """Return the resources of some in which this is more than a limit."""
        return [name for name in asked if self[name] > limit[name]]

    @property
    def nonzero(self) -> list[str]:
        """The resources with an amount above zero, without the count of pods."""
        return [name for name, amount in self.amounts.items() if amount > 0 and name != PODS]

    @property
    def significant(self) -> list[str]:
        """The resources with an amount above rounding errors, pods included."""
        return [name for name, amount in self.amounts.items() if amount >= DUST]

    def _names(self, other: Resources) -> Iterable[str]:
        if self.amounts.keys() == other.amounts.keys():
            return self.amounts
        # In one order, whatever the names hash to: messages stay the same.
        return {**self.amounts, **other.amounts}


NOTHING = Resources()
UNLIMITED = Resources(rest=inf)


class AmountError(ValueError):
    """An amount of a resource that cannot be read."""


def read_amounts(written: Mapping[str, Quantity]) -> Resources:
    """Read a map of quantities, without the resources that nodes cannot have; AmountError if an
    amount cannot be read, is negative, or is beyond 64 bits.
    """
    return Resources({n: _read(n, q) for n, q in written.items() if _is_counted(n)})


def pod_amounts(pod: Pod) -> Resources:
    """Return the requests of a pod, with 1 of the resource `pods`."""
    amounts: dict[str, float] = {PODS: 1}
    for name, amount in pod_requests(pod).items():
        if name in {CPU, MEMORY}:
            amounts[name] = amount
        elif _is_counted(name):
            amounts[name] = amount * 1000
    return Resources(amounts)


def node_amounts(node: Node) -> Resources:
    """Return the allocatable of a node; nothing if it is invalid."""
    try:
        return read_amounts(node.status.allocatable)
    except AmountError:
        return NOTHING


def write_amounts(resources: Resources) -> dict[str, str]:
    """Return the amounts as quantities, without zeros."""
    return {n: write_amount(n, a) for n, a in sorted(resources.amounts.items()) if 0 < a < inf}


def _is_counted(name: str) -> bool:
    if name in {CPU, MEMORY, PODS, EPHEMERAL_STORAGE}:
        return True
    # A pod cannot request attach limits, and a wrong one must not cost a queue the node.
    return is_scalar(name) and not is_attach_limit(name) and not name.startswith(_COUNT_QUOTA)


def _read(name: str, written: Quantity) -> int:
    try:
        exact = parse(written)
    except QuantityError as error:
        raise AmountError(f"{name}: {error}") from None
    if exact < 0:
        raise AmountError(f"{name}: {written!r} is negative")
    amount = value(written) if name in {MEMORY, PODS} else milli_value(written)
    if amount > MAX_INT64 * 1000:
        raise AmountError(f"{name}: {str(written)[:40]!r} is beyond 64 bits")
    return amount


def write_amount(name: str, amount: float) -> str:
    """Return an amount of a resource as a quantity."""
    if amount == inf:
        return "unlimited"
    whole = round(amount)
    if name == CPU:
        return f"{whole}m" if whole % 1000 else str(whole // 1000)
    if name == MEMORY:
        return format_amount(whole, Style.BINARY)
    return str(whole if name == PODS else -(-whole // 1000))
