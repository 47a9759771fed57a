"""Giving back what will never be a node, and settling what groups are meant to have.

Instances that failed, instances that never registered, and nodes whose drivers never came are given
back; a group that is meant to have instances which do not exist is told so. None of it takes a
group below its minimum unless an option says so, and a node goes only if nothing but daemons is on
it. Everything is counted as a failure of its group, once; and as given back once, however long the
cloud goes on to list it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bayplan.autoscaler.acting import Desk
from bayplan.autoscaler.cloud.calling import patiently
from bayplan.autoscaler.cloud.reading import Asked, Cloud
from bayplan.autoscaler.cloud.registry import GroupState
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.telling import messages
from bayplan.nodegroups import Instance, NodeGroupError, NodeRef

log = logging.getLogger(__name__)
TIMEOUT = "timeout"
FAILED = "instance error"


@dataclass(slots=True)
class Tidying:
    """Remembers which failures have been counted."""

    desk: Desk
    options: AutoscalerOptions
    _counted: set[str] = field(default_factory=set)
    _given: set[str] = field(default_factory=set)

    async def tidy(self, cloud: Cloud, now: datetime) -> int:
        """Give back what never will be; returns how much of it was given back."""
        self._settle_orders(cloud, now)
        given = 0
        for name, asked in sorted(cloud.groups.items()):
            if not asked.stale:
                state = self.desk.registry.states[name]
                given += await self._failed(asked, state)
                given += await self._unregistered(asked, state)
                given += await self._fix_size(asked, now)
        if self._counted or self._given:
            listed = {one.provider_id for asked in cloud.groups.values() for one in asked.instances}
            self._counted &= listed
            self._given &= listed
        return given

    def _settle_orders(self, cloud: Cloud, now: datetime) -> None:
        registry = self.desk.registry
        come, late = registry.settle_orders(now)
        for name in come:
            state = registry.states.get(name)
            if state is not None and not (state.failed or state.long_unregistered or state.late):
                self.desk.backoff.succeed(name)
        for name in late:
            asked = cloud.groups.get(name)
            if asked is not None:
                patience = asked.manner.options.max_node_provision_time
                notice = messages.timed_out(name, patience)
                self.desk.teller.about_all(notice)
                self.desk.fail(name, TIMEOUT, notice.text)

    async def _failed(self, asked: Asked, state: GroupState) -> int:
        """Instances that cannot be had."""
        if not state.failed:
            return 0
        new = [one for one in state.failed if one.provider_id not in self._counted]
        for (code, message), count in _by_error(new).items():
            notice = messages.instances_failed(asked.group.id, count, code, message)
            self.desk.teller.about_all(notice)
            self.desk.fail(asked.group.id, code, message)
        self._counted |= {one.provider_id for one in new}
        return len(await self._give_back(asked, state.failed, force=True))

    async def _unregistered(self, asked: Asked, state: GroupState) -> int:
        """Instances that never became nodes."""
        if not state.long_unregistered:
            return 0
        force = self.options.force_delete_unregistered_nodes
        given = await self._give_back(asked, state.long_unregistered, force=force)
        for provider_id in given:
            self.desk.teller.about_all(messages.unregistered(provider_id, asked.group.id))
        return len(given)

    async def _give_back(
        self, asked: Asked, instances: Sequence[Instance], *, force: bool
    ) -> list[str]:
        """Give back as many of these as a group's minimum allows; returns those that had not been
        given back before.
        """
        spare = len(instances) if force else asked.target - asked.group.min_size
        going = [NodeRef(one.provider_id) for one in instances[: max(0, spare)]]
        if not going:
            return []
        name = asked.group.id
        try:
            await patiently(self.desk.provider.delete_nodes(name, going))
        except NodeGroupError as error:
            log.warning("group %s: instances cannot be given back: %s", name, error)
            told = messages.unregistered(going[0].provider_id, name, str(error))
            self.desk.teller.about_all(told)
            return []
        new = [one.provider_id for one in going if one.provider_id not in self._given]
        self._given.update(new)
        return new

    async def _fix_size(self, asked: Asked, now: datetime) -> int:
        """A group that is meant to have instances which have not come for long."""
        name = asked.group.id
        short = self.desk.registry.shortfalls.get(name)
        patience = timedelta(seconds=asked.manner.options.max_node_provision_time)
        if short is None or now < short.since + patience:
            return 0
        there = asked.target - short.missing
        self.desk.teller.about_all(messages.size_fixed(name, asked.target, there))
        try:
            await patiently(self.desk.provider.decrease_target(name, short.missing))
        except NodeGroupError as error:
            log.warning("group %s: its size cannot be fixed: %s", name, error)
            return 0
        return short.missing


def _by_error(instances: Iterable[Instance]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = defaultdict(int)
    for one in instances:
        if one.error is not None:
            found[one.error.code or one.error.kind.value, one.error.message] += 1
    return dict(found)
