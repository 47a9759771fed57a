"""Cleanup of failed instances, unregistered nodes and target sizes.

Failed instances and long unregistered nodes are removed; the target size of a group is decreased by
instances that do not exist. A group keeps its minimum size unless an option allows less. Each is
counted once as a failure of its group, and once as removed, however long the provider lists it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bayplan.autoscaler import events
from bayplan.autoscaler.actuation.scale_up import ActuationContext
from bayplan.autoscaler.cloudstate.reader import CloudState, NodeGroupInfo, with_timeout
from bayplan.autoscaler.clusterstate.registry import GroupState
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.nodegroups import Instance, NodeGroupError, NodeRef

log = logging.getLogger(__name__)
TIMEOUT = "timeout"
FAILED = "instance error"


@dataclass(slots=True)
class FailedInstanceCleanup:
    """Removes failed and unregistered instances, and remembers which failures were counted."""

    context: ActuationContext
    options: AutoscalerOptions
    _counted: set[str] = field(default_factory=set)
    _removed: set[str] = field(default_factory=set)

    async def clean_up(self, cloud: CloudState, now: datetime) -> int:
        """Remove instances that will never be nodes; return how many were removed."""
        self._update_scale_up_requests(cloud, now)
        removed = 0
        for name, info in sorted(cloud.groups.items()):
            if not info.stale:
                state = self.context.registry.states[name]
                removed += await self._failed(info, state)
                removed += await self._unregistered(info, state)
                removed += await self._fix_size(info, now)
        if self._counted or self._removed:
            listed = {one.provider_id for info in cloud.groups.values() for one in info.instances}
            self._counted &= listed
            self._removed &= listed
        return removed

    def _update_scale_up_requests(self, cloud: CloudState, now: datetime) -> None:
        registry = self.context.registry
        succeeded, timed_out = registry.update_scale_up_requests(now)
        for name in succeeded:
            state = registry.states.get(name)
            if state is not None and not (
                state.failed or state.long_unregistered or state.missing_drivers
            ):
                self.context.backoff.remove_backoff(name)
        for name in timed_out:
            info = cloud.groups.get(name)
            if info is not None:
                timeout = info.options.max_node_provision_time
                notice = events.timed_out(name, timeout)
                self.context.recorder.about_all(notice)
                self.context.fail(name, TIMEOUT, notice.text)

    async def _failed(self, info: NodeGroupInfo, state: GroupState) -> int:
        """Remove failed instances."""
        if not state.failed:
            return 0
        new = [one for one in state.failed if one.provider_id not in self._counted]
        for (code, message), count in _by_error(new).items():
            notice = events.instances_failed(info.group.id, count, code, message)
            self.context.recorder.about_all(notice)
            self.context.fail(info.group.id, code, message)
        self._counted |= {one.provider_id for one in new}
        return len(await self._delete_instances(info, state.failed, force=True))

    async def _unregistered(self, info: NodeGroupInfo, state: GroupState) -> int:
        """Remove long unregistered instances."""
        if not state.long_unregistered:
            return 0
        force = self.options.force_delete_unregistered_nodes
        removed = await self._delete_instances(info, state.long_unregistered, force=force)
        for provider_id in removed:
            self.context.recorder.about_all(events.unregistered(provider_id, info.group.id))
        return len(removed)

    async def _delete_instances(
        self, info: NodeGroupInfo, instances: Sequence[Instance], *, force: bool
    ) -> list[str]:
        """Delete as many of these as a group's minimum size allows; return those not deleted
        before.
        """
        spare = len(instances) if force else info.target - info.group.min_size
        going = [NodeRef(one.provider_id) for one in instances[: max(0, spare)]]
        if not going:
            return []
        name = info.group.id
        try:
            await with_timeout(self.context.provider.delete_nodes(name, going))
        except NodeGroupError as error:
            log.warning("node group %s: failed to delete instances: %s", name, error)
            notice = events.unregistered(going[0].provider_id, name, str(error))
            self.context.recorder.about_all(notice)
            return []
        new = [one.provider_id for one in going if one.provider_id not in self._removed]
        self._removed.update(new)
        return new

    async def _fix_size(self, info: NodeGroupInfo, now: datetime) -> int:
        """Decrease the target size of a group that has long lacked instances."""
        name = info.group.id
        short = self.context.registry.shortfalls.get(name)
        timeout = timedelta(seconds=info.options.max_node_provision_time)
        if short is None or now < short.since + timeout:
            return 0
        size = info.target - short.missing
        self.context.recorder.about_all(events.size_fixed(name, info.target, size))
        try:
            await with_timeout(self.context.provider.decrease_target(name, short.missing))
        except NodeGroupError as error:
            log.warning("node group %s: failed to decrease the target size: %s", name, error)
            return 0
        return short.missing


def _by_error(instances: Iterable[Instance]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = defaultdict(int)
    for one in instances:
        if one.error is not None:
            found[one.error.code or one.error.kind.value, one.error.message] += 1
    return dict(found)
