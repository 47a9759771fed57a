"""Faults: what can be made to go wrong, and for whom.

The board holds the faults that are active now. Whoever simulates something asks it whether a fault
concerns him; a fault that names no node, group, driver or zone concerns everybody. Taking a fault
off the board is the recovery.
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

_BUYING = ("group", "zone")
_MACHINE = ("node", "group", "zone")
AIMS: dict[FaultKind, tuple[str, ...]] = {
    "stock-out": _BUYING,
    "quota": ("group",),
    "never-registers": _BUYING,
    "slow-start": _BUYING,
    "node-dies": _MACHINE,
    "node-flaps": _MACHINE,
    "no-driver": (*_MACHINE, "driver"),
    "provision-fails": ("driver", "zone"),
    "attach-fails": (*_MACHINE, "driver"),
    "detach-sticks": (*_MACHINE, "driver"),
}
"""By what each kind of fault can be aimed."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that goes wrong, for whom, and how badly."""

    kind: FaultKind
    node: str = ""
    group: str = ""
    driver: str = ""
    zone: str = ""
    delay: float = 300.0
    """How much longer a slow start takes, in seconds."""
    period: float = 120.0
    """A flapping node is silent for half of this, and well for the other half, in seconds."""

    def misaimed(self) -> str:
        """A field that this kind of fault cannot be aimed by, if one is set."""
        for field in ("node", "group", "driver", "zone"):
            if getattr(self, field) and field not in AIMS[self.kind]:
                return field
        return ""

    def concerns(self, **about: str) -> bool:
        """Whether it strikes something that is described so."""
        return all(
            not (wanted := getattr(self, field)) or wanted == about.get(field, wanted)
            for field in ("node", "group", "driver", "zone")
        )


class FaultBoard:
    """The faults that are active now."""

    def __init__(self) -> None:
        self.active: dict[str, Fault] = {}
        self.listeners: list[Callable[[Fault], None]] = []
        """Told of every fault that comes or goes."""

    def inject(self, name: str, fault: Fault) -> None:
        """Let something go wrong from now on; a fault of the same name is replaced."""
        self.clear(name)
        self.active[name] = fault
        self._tell(fault)

    def clear(self, name: str) -> None:
        """Let it be well again; nothing happens if there is no such fault."""
        fault = self.active.pop(name, None)
        if fault is not None:
            self._tell(fault)

    def find(self, kind: FaultKind, **about: str) -> Fault | None:
        """The first fault of a kind that concerns something, if there is one."""
        for fault in self.active.values():
            if fault.kind == kind and fault.concerns(**about):
                return fault
        return None

    def _tell(self, fault: Fault) -> None:
        for listener in self.listeners:
            listener(fault)
