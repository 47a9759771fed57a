"""What a cloud remembers: which instances it sold, how far its names have counted, what was paid.

It is kept beside the objects, a note an instance, and the next run with the same data file goes on
with it. A group's target is the number of its instances, so it needs no place of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import msgspec

from bayplan.embedded.apiserver.store.database import StoreError
from bayplan.embedded.nodes.machines import ErrorCode, Instance, NodeGroup, State

TOPIC = "cloud"
_TOTALS = ""
"""The name of the note that is no instance's."""


class Notes(Protocol):
    """Where an account is kept: a store, whose notes live as long as its objects."""

    def notes(self, topic: str) -> dict[str, bytes]:
        """What was noted, by name."""
        ...

    def keep_notes(self, topic: str, notes: Mapping[str, bytes | None]) -> None:
        """Note all this, or nothing of it; None forgets a note."""
        ...


class Sold(msgspec.Struct, frozen=True, kw_only=True):
    """An instance as it is kept, with the price at which it was last seen."""

    name: str
    group: str
    zone: str
    launched: float
    starts: float | None
    price: float
    state: State
    error_code: ErrorCode = ""
    error: str = ""

    @classmethod
    def of(cls, one: Instance) -> Sold:
        """An instance to keep."""
        return cls(
            name=one.name,
            group=one.group.name,
            zone=one.zone,
            launched=one.launched,
            starts=one.starts,
            price=one.group.instance_type.price,
            state=one.state,
            error_code=one.error_code,
            error=one.error,
        )

    def instance(self, group: NodeGroup) -> Instance:
        """The instance that was kept."""
        made = Instance(self.name, group, self.zone, self.launched, self.starts, self.state)
        made.error_code, made.error = self.error_code, self.error
        return made

    def cost(self, now: float) -> float:
        """What it has cost until now."""
        return cost(self.state, self.launched, self.price, now)


class Totals(msgspec.Struct, frozen=True):
    """What is kept of the cloud as a whole."""

    counters: dict[str, int]
    """By group, the number of the newest name; a group that is not here was never opened."""
    spent: float
    """What instances that are gone have cost."""


class Account(NamedTuple):
    """Everything that was kept."""

    totals: Totals
    sold: list[Sold]
    """Oldest first."""


def cost(state: State, launched: float, price: float, now: float) -> float:
    """What an instance has cost: by the hour from its purchase, nothing if it could not be had."""
    return 0.0 if state == "failed" else (now - launched) / 3600 * price


def load(notes: Notes) -> Account | None:
    """The account of an earlier run, None if there was none; StoreError if it cannot be read."""
    kept = notes.notes(TOPIC)
    totals = kept.pop(_TOTALS, None)
    if totals is None:
        return None
    try:
        sold = [msgspec.json.decode(data, type=Sold) for data in kept.values()]
        return Account(msgspec.json.decode(totals, type=Totals), sorted(sold, key=_age))
    except msgspec.DecodeError as problem:
        raise StoreError(f"what the cloud kept cannot be read: {problem}") from problem


def keep(notes: Notes, totals: Totals, changed: Mapping[str, Instance | None]) -> None:
    """Let the next run know of instances that came or changed, and, as None, of those that went."""
    encode = msgspec.json.encode
    written: dict[str, bytes | None] = {_TOTALS: encode(totals)}
    for name, one in changed.items():
        written[name] = None if one is None else encode(Sold.of(one))
    notes.keep_notes(TOPIC, written)


def _age(one: Sold) -> tuple[float, int, str]:
    return one.launched, len(one.name), one.name
