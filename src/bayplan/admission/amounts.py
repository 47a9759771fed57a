"""Quantities at the door: each must be readable, not negative, and of this world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from bayplan.admission.review import Fault
from bayplan.kube.meta import Quantity
from bayplan.kube.quantity import QuantityError, parse
from bayplan.kube.resources import PODS, is_extended
from bayplan.queues.resources import NOTHING, AmountError, Resources, read_amounts


def amount_faults(place: str, written: Mapping[str, Quantity]) -> Iterator[Fault]:
    """What is wrong with the quantities of a map."""
    for name, quantity in written.items():
        try:
            read_amounts({name: quantity})
        except AmountError as error:
            yield Fault(place, str(error))
            continue
        whole = name == PODS or is_extended(name)
        if whole and parse(quantity).denominator != 1:
            yield Fault(place, f"{name}: {quantity!r} is not a whole number")


def uncounted(place: str, written: Mapping[str, Quantity]) -> Iterator[str]:
    """Warnings of names that no node has, and that therefore do not count."""
    for name in written.keys() - read_amounts(written).amounts.keys():
        yield f"{place}: {name} is no resource that a node can have, and does not count"


def above(
    these: Mapping[str, Quantity], those: Mapping[str, Quantity]
) -> Iterator[tuple[str, Quantity, Quantity]]:
    """The resources that both name and of which these are more than those."""
    for name, quantity in these.items():
        high, low = _exact(quantity), _exact(those.get(name, ""))
        if high is not None and low is not None and high > low:
            yield name, quantity, those[name]


def _exact(quantity: Quantity) -> Fraction | None:
    try:
        return parse(quantity)
    except QuantityError:
        return None


def readable(written: Mapping[str, Quantity]) -> Resources:
    """What a map amounts to; one that cannot be read is nothing."""
    try:
        return read_amounts(written)
    except AmountError:
        return NOTHING
