"""Giving prepared nodes back to the cloud, some of one group together where that is asked for.

A cloud that refuses has not acted. One that does not answer may have: its instances then say
whether the node is going, and if they do not, it stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.autoscaler.cloud.calling import patiently
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaledown.actuation.jobs import Job
from bayplan.base.clock import Clock
from bayplan.nodegroups import (
    InstanceState,
    NodeGroupError,
    NodeRef,
    NotFoundError,
    Provider,
    UnavailableError,
)


class Returning:
    """Deletes through a provider."""

    def __init__(self, provider: Provider, options: AutoscalerOptions, clock: Clock) -> None:
        self._provider = provider
        self._interval = options.node_deletion_batcher_interval
        self._clock = clock
        self._gathered: dict[str, list[Job]] = {}

    async def gather(self, group: str, jobs: Sequence[Job]) -> list[Job]:
        """The nodes of a group that are to be deleted now; none if others will take them along."""
        if self._interval <= 0 or jobs[0].together:
            return list(jobs)
        first = group not in self._gathered
        self._gathered.setdefault(group, []).extend(jobs)
        if not first:
            return []
        await self._clock.sleep(self._interval)
        return self._gathered.pop(group)

    async def delete(self, group: str, jobs: Sequence[Job]) -> None:
        """Give nodes of a group back, all or none; NodeGroupError if they stay."""
        nodes = [NodeRef.of(job.node) for job in jobs]
        try:
            await patiently(self._provider.delete_nodes(group, nodes))
        except UnavailableError as error:
            await self._unless_going(group, nodes, str(error))
        except NotFoundError:
            # They went by themselves, if the cloud has none of them.
            await self._unless_going(group, nodes, "the cloud does not know the node")

    async def _unless_going(self, group: str, nodes: Sequence[NodeRef], why: str) -> None:
        """UnavailableError unless every node is going, or gone."""
        try:
            there = await patiently(self._provider.instances(group))
        except NodeGroupError:
            raise UnavailableError(why) from None
        staying = {one.provider_id for one in there if one.state is not InstanceState.DELETING}
        if any(node.provider_id in staying for node in nodes):
            raise UnavailableError(why)
