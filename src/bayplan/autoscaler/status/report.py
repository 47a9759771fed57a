"""Reports at the end of a loop: the status ConfigMap, gauges, and problems of node groups."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from bayplan.autoscaler import events
from bayplan.autoscaler.cloudstate.reader import CloudState
from bayplan.autoscaler.clusterview import ClusterViewBuilder
from bayplan.autoscaler.events import AutoscalerEvents
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.plan import AutoscalerPlan
from bayplan.autoscaler.scaledown.removable import Deletions
from bayplan.autoscaler.status.configmap import (
    LAST_UPDATED,
    ClusterStatus,
    NodeGroupStatus,
    StatusDocument,
    StatusWriter,
    same_but_for_time,
)
from bayplan.autoscaler.status.gauges import Gauges
from bayplan.client import Client, Untyped, apply
from bayplan.client.errors import ClientError
from bayplan.client.resources import CONFIG_MAPS

log = logging.getLogger(__name__)
MANAGER = "bayplan-autoscaler"
WRITE_INTERVAL = timedelta(minutes=1)
"""How often an unchanged status is written."""
MAX_OUTLIERS = 10
"""How many nodes of a group are reported because their drivers differ."""


@dataclass(slots=True)
class StatusReport:
    """Reports the status of the cluster and its node groups."""

    client: Client | None
    """The client that writes the ConfigMap; None in a dry run."""
    options: AutoscalerOptions
    builder: ClusterViewBuilder
    gauges: Gauges
    recorder: AutoscalerEvents
    writer: StatusWriter
    deletions: Callable[[], Deletions]
    _written: StatusDocument | None = None
    _due: datetime | None = None

    def problems(self, cloud: CloudState) -> None:
        """Record events about settings of groups that cannot be used."""
        for one in cloud.problems:
            self.recorder.about_reference(one.about, events.misdeclared(one.group, one.text))
        for name, info in cloud.groups.items():
            template, error = info.template, info.template_error
            problems = template.problems if template is not None else (error,) if error else ()
            for text in problems:
                self.recorder.about_all(events.misdeclared(name, text))
        self._outliers()

    def _outliers(self) -> None:
        members = self.builder.node_states.members
        for view in self.builder.views.values():
            for one in view.outliers[:MAX_OUTLIERS]:
                if (member := members.get(one.node)) is not None:
                    self.recorder.about(member.node, events.driver_outlier(str(one)))

    async def write(self, cloud: CloudState, plan: AutoscalerPlan, now: datetime) -> None:
        """Report the status."""
        status = self._status(cloud, plan, now)
        self.gauges.show(cloud, status)
        if self.client is None or not self.options.write_status_configmap:
            return
        document = self.writer.build(status, now)
        changed = self._written is None or not same_but_for_time(document, self._written)
        if changed or self._due is None or now >= self._due:
            await self._write(self.client, document, now)

    async def _write(self, client: Client, document: StatusDocument, now: datetime) -> None:
        target = self.options.namespace, self.options.status_config_map_name
        meta: Untyped = {
            "namespace": target[0],
            "name": target[1],
            "annotations": {LAST_UPDATED: now.strftime("%Y-%m-%d %H:%M:%S.%f +0000 UTC")},
        }
        wanted = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            "data": document.data(),
        }
        try:
            await client.patch(CONFIG_MAPS, *target, change=apply(wanted, MANAGER, force=True))
        except ClientError as error:
            log.warning("cannot write the status ConfigMap: %s", error)
            return
        self._written, self._due = document, now + WRITE_INTERVAL

    def _status(self, cloud: CloudState, plan: AutoscalerPlan, now: datetime) -> ClusterStatus:
        builder = self.builder
        registry, backoff = builder.registry, builder.backoff
        problems: dict[str, list[str]] = {}
        for one in cloud.problems:
            problems.setdefault(one.group, []).append(one.text)
        deleting = self.deletions().by_group()
        groups = tuple(
            NodeGroupStatus(
                group=info.group,
                state=registry.states[name],
                healthy=registry.group_is_healthy(name),
                backoff=backoff.backoff_status(name, now),
                in_progress=bool(len(registry.states[name].upcoming)),
                candidates=plan.candidates.get(name, 0),
                being_deleted=deleting[name],
                problems=(*builder.problems(name), *problems.get(name, ())),
                drivers=builder.drivers(name),
                outliers=builder.outliers(name),
            )
            for name, info in sorted(cloud.groups.items())
        )
        return ClusterStatus(
            healthy=registry.is_healthy(builder.node_states),
            needed=bool(plan.pending),
            message=plan.message,
            groups=groups,
        )
