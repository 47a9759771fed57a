"""What a cloud has sold, what it costs, and what of it the cloud remembers.

It is kept beside the objects, a note an instance, and the next run with the same data file goes on
with it. A group's target is the number of its instances, so it needs no place of its own.

Every change is kept at once (see `account`). Without an account, nodes that a data file has are
taken for instances that were sold by somebody who kept none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.database import StoreError
from bayplan.embedded.control.controller import Stage
from bayplan.embedded.control.facts import moment
from bayplan.embedded.control.view import NODES
from bayplan.embedded.nodes.machines import (
    ZONE_LABEL,
    ErrorCode,
    Instance,
    NodeGroup,
    State,
    sold_as,
)

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


class Inventory:
    """The instances of a cloud's groups."""

    def __init__(self, stage: Stage, groups: Mapping[str, NodeGroup], notes: Notes) -> None:
        self.instances: dict[str, Instance] = {}
        self._stage = stage
        self._groups = groups
        self._notes = notes
        self._members: dict[str, dict[str, Instance]] = {name: {} for name in groups}
        self._counters: dict[str, int] = {}
        self._spent = 0.0
        kept = load(notes)
        if kept is None:
            self._adopt_nodes()
        else:
            self._go_on(kept)

    def of(self, group: str) -> list[Instance]:
        """A group's instances, oldest first."""
        return list(self._members[group].values())

    def count(self, group: str) -> int:
        """How many instances a group has."""
        return len(self._members[group])

    def open(self, group: str) -> bool:
        """Begin with a group; False if an earlier run did already."""
        if group in self._counters:
            return False
        self._counters[group] = _highest(self.of(group))
        return True

    def next_number(self, group: str) -> int:
        """A number that no name of the group has had."""
        number = self._counters[group] = self._counters.get(group, 0) + 1
        return number

    def add(self, one: Instance) -> None:
        """Have one more."""
        self.instances[one.name] = self._members[one.group.name][one.name] = one

    def remove(self, one: Instance) -> None:
        """Have it no longer; what it cost stays paid."""
        self._spent += self._cost(one)
        del self.instances[one.name], self._members[one.group.name][one.name]

    def keep(self, names: Iterable[str]) -> None:
        """Let the next run know what became of these."""
        changed = {name: self.instances.get(name) for name in names}
        keep(self._notes, Totals(self._counters, self._spent), changed)

    def spent(self) -> float:
        """What all instances have cost so far."""
        return self._spent + sum(self._cost(one) for one in self.instances.values())

    def _cost(self, one: Instance) -> float:
        price = one.group.instance_type.price
        return cost(one.state, one.launched, price, self._stage.seconds())

    def _go_on(self, kept: Account) -> None:
        """Be as an earlier run was; groups that are gone take their instances with them."""
        counters = kept.totals.counters
        self._counters = {name: n for name, n in counters.items() if name in self._groups}
        self._spent = kept.totals.spent
        gone = [one for one in kept.sold if one.group not in self._groups]
        self._spent += sum(one.cost(self._stage.seconds()) for one in gone)
        for one in kept.sold:
            if one.group in self._groups:
                self.add(one.instance(self._groups[one.group]))
        self.keep(one.name for one in gone)

    def _adopt_nodes(self) -> None:
        for node in self._stage.view.all(NODES):
            provider = (node.get("spec") or {}).get("providerID") or ""
            group, name = sold_as(provider) or ("", "")
            if group in self._groups:
                self._adopt(self._groups[group], name, node["metadata"])
        self.keep(self.instances)

    def _adopt(self, group: NodeGroup, name: str, meta: JsonObject) -> None:
        launched = moment(meta["creationTimestamp"])
        zone = (meta.get("labels") or {}).get(ZONE_LABEL, group.zones[0])
        self.add(Instance(name, group, zone, launched, launched, "running"))


def _highest(instances: Iterable[Instance]) -> int:
    """The greatest number that a name ends in."""
    numbers = (one.name.rpartition("-")[2] for one in instances)
    return max((int(number) for number in numbers if number.isdecimal()), default=0)
