"""What a cloud remembers: which instances it sold, how far its names have counted, what was paid.

It is written whole after every change, beside the objects, and the next run with the same data file
goes on with it. A group's target is the number of its instances, so it needs no place of its own.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from bayplan.embedded.apiserver.store.database import StoreError
from bayplan.embedded.nodes.machines import ErrorCode, Instance, NodeGroup, State

NOTE = "cloud"


class Notes(Protocol):
    """Where an account is kept: a store, whose notes live as long as its objects."""

    def note(self, name: str) -> bytes | None:
        """What was noted last; None if nothing ever was."""
        ...

    def keep_note(self, name: str, data: bytes) -> None:
        """Note this instead."""
        ...


class Sold(msgspec.Struct, frozen=True):
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
        price = one.group.instance_type.price
        return cls(
            one.name,
            one.group.name,
            one.zone,
            one.launched,
            one.starts,
            price,
            one.state,
            one.error_code,
            one.error,
        )

    def instance(self, group: NodeGroup) -> Instance:
        """The instance that was kept."""
        return Instance(
            self.name,
            group,
            self.zone,
            self.launched,
            self.starts,
            self.state,
            self.error,
            self.error_code,
        )

    def cost(self, now: float) -> float:
        """What it has cost until now."""
        return cost(self.state, self.launched, self.price, now)


class Account(msgspec.Struct):
    """Everything that is kept."""

    counters: dict[str, int]
    """By group, the number of the newest name; a group that is not here was never opened."""
    spent: float
    """What instances that are gone have cost."""
    sold: list[Sold]


def cost(state: State, launched: float, price: float, now: float) -> float:
    """What an instance has cost: by the hour from its purchase, nothing if it could not be had."""
    return 0.0 if state == "failed" else (now - launched) / 3600 * price


def load(notes: Notes) -> Account | None:
    """The account of an earlier run; StoreError if it cannot be read."""
    kept = notes.note(NOTE)
    try:
        return None if kept is None else msgspec.json.decode(kept, type=Account)
    except msgspec.DecodeError as problem:
        raise StoreError(f"what the cloud kept cannot be read: {problem}") from problem


def keep(notes: Notes, account: Account) -> None:
    """Let the next run know."""
    notes.keep_note(NOTE, msgspec.json.encode(account))
