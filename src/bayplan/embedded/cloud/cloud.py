"""The cloud: buys and gives back instances, as an autoscaler's provider would ask it to.

Asking for more than a group's maximum, or over a quota, is refused at once. A stock-out shows only
later, as it does in real clouds: the instance is there, has an error and never runs, until somebody
gives it back, which is allowed even where the group is at its minimum. A group's target is the
number of its instances. Names count up and are never used twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.cloud import account
from bayplan.embedded.cloud.account import Account, Notes, Sold
from bayplan.embedded.control.facts import moment
from bayplan.embedded.control.stage import Stage
from bayplan.embedded.control.storages import NODES
from bayplan.embedded.nodes.machines import PROVIDER, ZONE_LABEL, Instance, NodeGroup
from bayplan.nodegroups import (
    InvalidRequestError,
    NotFoundError,
    QuotaExceededError,
    RefusedError,
)


class Cloud:
    """Node groups and their instances."""

    def __init__(self, stage: Stage, groups: Iterable[NodeGroup], notes: Notes) -> None:
        self._stage = stage
        self._notes = notes
        self._groups = {group.name: group for group in groups}
        self._counters: dict[str, int] = {}
        self._spent = 0.0
        self.instances: dict[str, Instance] = {}
        self.listeners: list[Callable[[str], None]] = []
        """Told the name of every instance that comes, changes or goes."""
        kept = account.load(notes)
        if kept is None:
            self._adopt_nodes()
        else:
            self._go_on(kept)

    def open(self) -> None:
        """Buy what groups have at the start, except those that an earlier run opened already."""
        for name, group in self._groups.items():
            if name not in self._counters:
                self._counters[name] = _highest(self.instances_of(name))
                missing = group.count - self.target(name)
                if missing > 0:
                    self.increase(name, missing)
        self._keep()

    def groups(self) -> list[NodeGroup]:
        """All node groups, in order."""
        return [self._groups[name] for name in sorted(self._groups)]

    def group(self, name: str) -> NodeGroup:
        """A node group; NotFoundError if there is none of that name."""
        if name not in self._groups:
            known = ", ".join(sorted(self._groups)) or "none"
            raise NotFoundError(f"there is no node group {name!r}; there are: {known}")
        return self._groups[name]

    def instance(self, name: str) -> Instance:
        """An instance; NotFoundError if there is none of that name."""
        if name not in self.instances:
            raise NotFoundError(f"there is no instance {name!r}")
        return self.instances[name]

    def target(self, group: str) -> int:
        """How many instances a group is meant to have."""
        return len(self.instances_of(self.group(group).name))

    def instances_of(self, group: str) -> list[Instance]:
        """A group's instances, oldest first, those that failed too."""
        return [one for one in self.instances.values() if one.group.name == group]

    def increase(self, group: str, count: int) -> list[Instance]:
        """Buy instances; RefusedError or QuotaExceededError if they are too many."""
        wanted = self.group(group)
        target = self.target(group) + count
        if count <= 0:
            raise InvalidRequestError(f"node group {group}: cannot be increased by {count}")
        if target > wanted.maximum:
            raise RefusedError(
                f"node group {group}: {target} is above its maximum {wanted.maximum}"
            )
        if self._stage.faults.find("quota", group=group):
            raise QuotaExceededError(f"node group {group}: quota exceeded")
        bought = [self._launch(wanted) for _ in range(count)]
        self._changed(one.name for one in bought)
        return bought

    def delete(self, names: Iterable[str]) -> None:
        """Give instances back, all or none: RefusedError if the minimum would be passed."""
        going = [self.instance(name) for name in dict.fromkeys(names)]
        for group, count in sorted(Counter(one.group.name for one in going).items()):
            left, minimum = self.target(group) - count, self._groups[group].minimum
            sound = any(one.state != "failed" for one in going if one.group.name == group)
            if left < minimum and sound:
                raise RefusedError(
                    f"node group {group}: {left} would be below its minimum {minimum}"
                )
        for one in going:
            self._spent += self._cost(one)
            del self.instances[one.name]
        self._changed(one.name for one in going)

    def decrease_target(self, group: str, count: int) -> None:
        """Want fewer without giving back any that runs: what failed goes, then the newest."""
        if count <= 0:
            raise InvalidRequestError(f"node group {group}: cannot be decreased by {count}")
        made = reversed(self.instances_of(self.group(group).name))
        making = sorted((one for one in made if one.state != "running"), key=_failed_first)
        if count > len(making):
            raise RefusedError(f"node group {group}: only {len(making)} are still being created")
        self.delete(one.name for one in making[:count])

    def start(self, name: str) -> None:
        """An instance that was being made runs."""
        self.instance(name).state = "running"
        self._changed([name])

    def fail(self, name: str, said: str) -> None:
        """An instance cannot be had."""
        one = self.instance(name)
        one.state, one.error_code, one.error = "failed", "OUT_OF_STOCK", said
        self._changed([name])

    def spent(self) -> float:
        """What all instances have cost so far."""
        return self._spent + sum(self._cost(one) for one in self.instances.values())

    def _launch(self, group: NodeGroup) -> Instance:
        number = self._counters[group.name] = self._counters.get(group.name, 0) + 1
        zone = group.zones[(number - 1) % len(group.zones)]
        now = self._stage.seconds()
        made = Instance(f"{group.name}-{number}", group, zone, now, self._start(group, zone))
        self.instances[made.name] = made
        return made

    def _start(self, group: NodeGroup, zone: str) -> float | None:
        faults = self._stage.faults
        if faults.find("never-registers", group=group.name, zone=zone):
            return None
        slow = faults.find("slow-start", group=group.name, zone=zone)
        wait = self._stage.about(group.start_seconds) + (slow.delay if slow else 0.0)
        return self._stage.seconds() + wait

    def _cost(self, one: Instance) -> float:
        return Sold.of(one).cost(self._stage.seconds())

    def _changed(self, names: Iterable[str]) -> None:
        self._keep()
        for name in names:
            for listener in self.listeners:
                listener(name)

    def _keep(self) -> None:
        sold = [Sold.of(one) for one in self.instances.values()]
        account.keep(self._notes, Account(self._counters, self._spent, sold))

    def _go_on(self, kept: Account) -> None:
        """Be as an earlier run was; groups that are gone take their instances with them."""
        self._spent = kept.spent
        self._counters = {name: n for name, n in kept.counters.items() if name in self._groups}
        for one in kept.sold:
            group = self._groups.get(one.group)
            if group is None:
                self._spent += one.cost(self._stage.seconds())
            else:
                self.instances[one.name] = one.instance(group)

    def _adopt_nodes(self) -> None:
        """Nodes in a data file that no cloud kept account of have their instances still."""
        for node in self._stage.view.all(NODES):
            provider = (node.get("spec") or {}).get("providerID") or ""
            group, _, name = provider.removeprefix(PROVIDER).partition("/")
            if provider.startswith(PROVIDER) and group in self._groups:
                self._adopt(self._groups[group], name, node["metadata"])

    def _adopt(self, group: NodeGroup, name: str, meta: JsonObject) -> None:
        launched = moment(meta["creationTimestamp"])
        zone = (meta.get("labels") or {}).get(ZONE_LABEL, group.zones[0])
        self.instances[name] = Instance(name, group, zone, launched, launched, "running")


def _failed_first(one: Instance) -> bool:
    return one.state != "failed"


def _highest(instances: Iterable[Instance]) -> int:
    """The greatest number that a name ends in."""
    numbers = (one.name.rpartition("-")[2] for one in instances)
    return max((int(number) for number in numbers if number.isdecimal()), default=0)
