"""What a cloud has sold: instances by name and by group, their names' numbers, and what they cost.

Every change is kept at once (see `account`). Without an account, nodes that a data file has are
taken for instances that were sold by somebody who kept none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.cloud import account
from bayplan.embedded.cloud.account import Account, Notes, Totals, cost
from bayplan.embedded.control.controller import Stage
from bayplan.embedded.control.facts import moment
from bayplan.embedded.control.storages import NODES
from bayplan.embedded.nodes.machines import ZONE_LABEL, Instance, NodeGroup, sold_as


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
        kept = account.load(notes)
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
        account.keep(self._notes, Totals(self._counters, self._spent), changed)

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
