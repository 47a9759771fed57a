"""Amounts as people write them: 16 CPUs, 0.5 CPUs, 3.5 GiB of memory, 4 nvidia.com/gpu."""

from __future__ import annotations

from fractions import Fraction

from bayplan.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY

_IN_BYTES = (MEMORY, EPHEMERAL_STORAGE)
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_PLACES = 3


def number(resource: str, amount: int) -> str:
    """An amount (cpu in thousandths, else whole units) without the resource's name."""
    if resource == CPU:
        return _decimal(Fraction(amount, 1000))
    return size(amount) if is_in_bytes(resource) else f"{amount}"


def of(resource: str, amount: int) -> str:
    """An amount with the resource's name."""
    text = number(resource, amount)
    if resource == CPU:
        return f"{text} CPU" if amount == 1000 else f"{text} CPUs"
    return f"{text} of {resource}" if is_in_bytes(resource) else f"{text} {resource}"


def size(amount: int) -> str:
    """Bytes in the largest unit of which there is one."""
    unit = 0
    value = Fraction(amount)
    while abs(value) >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{_decimal(value)} {_UNITS[unit]}"


def is_in_bytes(resource: str) -> bool:
    """Whether a resource is counted in bytes."""
    return resource in _IN_BYTES or resource.startswith("hugepages-")


def _decimal(value: Fraction) -> str:
    """A number without needless zeros; rounded, where it does not end."""
    text = f"{float(value):.{_PLACES}f}".rstrip("0").rstrip(".")
    return text or "0"
