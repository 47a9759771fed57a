"""The instances of the simulated cloud, their costs, and their records in the data file.

Every change is saved at once, one record per instance, and the next run with the same data file
continues with it. A group's target is the number of its instances, so it is not saved.

If there are nodes but no records, the nodes' instances are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.database import StoreError
from bayplan.embedded.control.controller import ControllerContext
from bayplan.embedded.control.facts import moment
from bayplan.embedded.control.view import NODES
from bayplan.embedded.nodes.machines import (
    ZONE_LABEL,
    ErrorCode,
    SimulatedInstance,
    SimulatedNodeGroup,
    State,
    instance_of,
)

TOPIC = "cloud"
_TOTALS = ""
"""The name of the record of the totals."""


class RecordStore(Protocol):
    """Where records are kept: a store, whose records live as long as its objects."""

    def records(self, topic: str) -> dict[str, bytes]:
        """Return the records by name."""
        ...

    def save_records(self, topic: str, store: Mapping[str, bytes | None]) -> None:
        """Save all these records in one transaction; None deletes a record."""
        ...


class InstanceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An instance as it is saved, with its last price."""

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
    def of(cls, one: SimulatedInstance) -> InstanceRecord:
        """Return the record of an instance."""
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

    def instance(self, group: SimulatedNodeGroup) -> SimulatedInstance:
        """Return the instance of the record."""
        made = SimulatedInstance(
            self.name, group, self.zone, self.launched, self.starts, self.state
        )
        made.error_code, made.error = self.error_code, self.error
        return made

    def cost(self, now: float) -> float:
        """Return its cost until now."""
        return cost(self.state, self.launched, self.price, now)


class InventoryTotals(msgspec.Struct, frozen=True):
    """The saved totals of the cloud."""

    counters: dict[str, int]
    """By group, the number of the newest name; a group that is absent was never opened."""
    spent: float
    """Cost of deleted instances."""


class InventoryRecords(NamedTuple):
    """All saved records."""

    totals: InventoryTotals
    instances: list[InstanceRecord]
    """Oldest first."""


def cost(state: State, launched: float, price: float, now: float) -> float:
    """Return the cost of an instance: by the hour from its creation, zero if it failed."""
    return 0.0 if state == "failed" else (now - launched) / 3600 * price


def load(store: RecordStore) -> InventoryRecords | None:
    """Return the records of an earlier run, or None; StoreError if they cannot be read."""
    kept = store.records(TOPIC)
    totals = kept.pop(_TOTALS, None)
    if totals is None:
        return None
    try:
        instances = [msgspec.json.decode(data, type=InstanceRecord) for data in kept.values()]
        return InventoryRecords(
            msgspec.json.decode(totals, type=InventoryTotals), sorted(instances, key=_age)
        )
    except msgspec.DecodeError as problem:
        raise StoreError(
            f"the records of the simulated cloud cannot be read: {problem}"
        ) from problem


def save(
    store: RecordStore, totals: InventoryTotals, changed: Mapping[str, SimulatedInstance | None]
) -> None:
    """Save new and changed instances, and delete the records of those that are None."""
    encode = msgspec.json.encode
    written: dict[str, bytes | None] = {_TOTALS: encode(totals)}
    for name, one in changed.items():
        written[name] = None if one is None else encode(InstanceRecord.of(one))
    store.save_records(TOPIC, written)


def _age(one: InstanceRecord) -> tuple[float, int, str]:
    return one.launched, len(one.name), one.name


class InstanceInventory:
    """The instances of a cloud's groups."""

    def __init__(
        self,
        context: ControllerContext,
        groups: Mapping[str, SimulatedNodeGroup],
        store: RecordStore,
    ) -> None:
        self.instances: dict[str, SimulatedInstance] = {}
        self._context = context
        self._groups = groups
        self._store = store
        self._members: dict[str, dict[str, SimulatedInstance]] = {name: {} for name in groups}
        self._counters: dict[str, int] = {}
        self._spent = 0.0
        kept = load(store)
        if kept is None:
            self._adopt_nodes()
        else:
            self._go_on(kept)

    def of(self, group: str) -> list[SimulatedInstance]:
        """Return a group's instances, oldest first."""
        return list(self._members[group].values())

    def count(self, group: str) -> int:
        """Return the number of a group's instances."""
        return len(self._members[group])

    def open(self, group: str) -> bool:
        """Register a group; False if an earlier run did already."""
        if group in self._counters:
            return False
        self._counters[group] = _highest(self.of(group))
        return True

    def next_number(self, group: str) -> int:
        """Return a number that no name of the group has had."""
        number = self._counters[group] = self._counters.get(group, 0) + 1
        return number

    def add(self, one: SimulatedInstance) -> None:
        """Add an instance."""
        self.instances[one.name] = self._members[one.group.name][one.name] = one

    def remove(self, one: SimulatedInstance) -> None:
        """Remove an instance; its cost stays in the totals."""
        self._spent += self._cost(one)
        del self.instances[one.name], self._members[one.group.name][one.name]

    def save(self, names: Iterable[str]) -> None:
        """Save these instances."""
        changed = {name: self.instances.get(name) for name in names}
        save(self._store, InventoryTotals(self._counters, self._spent), changed)

    def spent(self) -> float:
        """Return the cost of all instances so far."""
        return self._spent + sum(self._cost(one) for one in self.instances.values())

    def _cost(self, one: SimulatedInstance) -> float:
        price = one.group.instance_type.price
        return cost(one.state, one.launched, price, self._context.seconds())

    def _go_on(self, kept: InventoryRecords) -> None:
        """Continue with the records of an earlier run, without those of unknown groups."""
        counters = kept.totals.counters
        self._counters = {name: n for name, n in counters.items() if name in self._groups}
        self._spent = kept.totals.spent
        gone = [one for one in kept.instances if one.group not in self._groups]
        self._spent += sum(one.cost(self._context.seconds()) for one in gone)
        for one in kept.instances:
            if one.group in self._groups:
                self.add(one.instance(self._groups[one.group]))
        self.save(one.name for one in gone)

    def _adopt_nodes(self) -> None:
        for node in self._context.view.all(NODES):
            provider = (node.get("spec") or {}).get("providerID") or ""
            group, name = instance_of(provider) or ("", "")
            if group in self._groups:
                self._adopt(self._groups[group], name, node["metadata"])
        self.save(self.instances)

    def _adopt(self, group: SimulatedNodeGroup, name: str, meta: JsonObject) -> None:
        launched = moment(meta["creationTimestamp"])
        zone = (meta.get("labels") or {}).get(ZONE_LABEL, group.zones[0])
        self.add(SimulatedInstance(name, group, zone, launched, launched, "running"))


def _highest(instances: Iterable[SimulatedInstance]) -> int:
    """Return the greatest number at the end of a name."""
    numbers = (one.name.rpartition("-")[2] for one in instances)
    return max((int(number) for number in numbers if number.isdecimal()), default=0)
