"""Faults that can be injected, and their targets.

The board has the active faults. Simulated components look up whether a fault applies to them; a
fault without node, group, driver or zone applies to all. Removing a fault from the board is the
recovery.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import msgspec

FaultKind = Literal[
    "stock-out",
    "quota",
    "never-registers",
    "slow-start",
    "node-dies",
    "node-flaps",
    "no-driver",
    "provision-fails",
    "attach-fails",
    "detach-sticks",
]
FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)

_SCALE_UP = ("group", "zone")
_MACHINE = ("node", "group", "zone")
TARGET_FIELDS: dict[FaultKind, tuple[str, ...]] = {
    "stock-out": _SCALE_UP,
    "quota": ("group",),
    "never-registers": _SCALE_UP,
    "slow-start": _SCALE_UP,
    "node-dies": _MACHINE,
    "node-flaps": _MACHINE,
    "no-driver": (*_MACHINE, "driver"),
    "provision-fails": ("driver", "zone"),
    "attach-fails": (*_MACHINE, "driver"),
    "detach-sticks": (*_MACHINE, "driver"),
}
"""The target fields that each kind of fault supports."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault: its kind, its target and its parameters."""

    kind: FaultKind
    node: str = ""
    group: str = ""
    driver: str = ""
    zone: str = ""
    delay: float = 300.0
    """Additional seconds of a slow start."""
    period: float = 120.0
    """A flapping node is silent for half of this and healthy for the other half, in seconds."""

    def unsupported_target(self) -> str:
        """Return a target field that this kind of fault does not support, if one is set."""
        for field in ("node", "group", "driver", "zone"):
            if getattr(self, field) and field not in TARGET_FIELDS[self.kind]:
                return field
        return ""

    def applies_to(self, **about: str) -> bool:
        """Return whether the fault applies to something with these fields."""
        return all(
            not (wanted := getattr(self, field)) or wanted == about.get(field, wanted)
            for field in ("node", "group", "driver", "zone")
        )


class FaultBoard:
    """The active faults."""

    def __init__(self) -> None:
        self.active: dict[str, Fault] = {}
        self.listeners: list[Callable[[Fault], None]] = []
        """Called with every fault that is injected or cleared."""

    def inject(self, name: str, fault: Fault) -> None:
        """Add a fault; one of the same name is replaced."""
        self.clear(name)
        self.active[name] = fault
        self._notify(fault)

    def clear(self, name: str) -> None:
        """Remove a fault, if it exists."""
        fault = self.active.pop(name, None)
        if fault is not None:
            self._notify(fault)

    def find(self, kind: FaultKind, **about: str) -> Fault | None:
        """Return the first fault of a kind that applies to something, or None."""
        for fault in self.active.values():
            if fault.kind == kind and fault.applies_to(**about):
                return fault
        return None

    def _notify(self, fault: Fault) -> None:
        for listener in self.listeners:
            listener(fault)
