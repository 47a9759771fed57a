"""What a loop says at its end: how everything stands, and what groups say of themselves that
cannot be used.
"""

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
from bayplan.autoscaler.plan import Plan
from bayplan.autoscaler.scaledown.release import Deletions
from bayplan.autoscaler.status.configmap import (
    LAST_UPDATED,
    ClusterStatus,
    GroupStatus,
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
SELDOM = timedelta(minutes=1)
"""How often a status is written that says nothing new."""


@dataclass(slots=True)
class StatusReport:
    """Tells how everything stands."""

    client: Client | None
    """Whom the ConfigMap is written by; nobody in a dry run."""
    options: AutoscalerOptions
    builder: ClusterViewBuilder
    gauges: Gauges
    recorder: AutoscalerEvents
    writer: StatusWriter
    deletions: Callable[[], Deletions]
    _written: StatusDocument | None = None
    _due: datetime | None = None

    def problems(self, cloud: CloudState) -> None:
        """Tell what groups say of themselves that cannot be used."""
        for one in cloud.problems:
            self.recorder.about_reference(one.about, events.misdeclared(one.group, one.text))
        for name, asked in cloud.groups.items():
            template, error = asked.template, asked.template_error
            told = template.problems if template is not None else (error,) if error else ()
            for text in told:
                self.recorder.about_all(events.misdeclared(name, text))

    async def write(self, cloud: CloudState, plan: Plan, now: datetime) -> None:
        """Say how everything stands."""
        status = self._status(cloud, plan, now)
        self.gauges.show(cloud, status)
        if self.client is None or not self.options.write_status_configmap:
            return
        told = self.writer.tell(status, now)
        news = self._written is None or not same_but_for_time(told, self._written)
        if news or self._due is None or now >= self._due:
            await self._write(self.client, told, now)

    async def _write(self, client: Client, told: StatusDocument, now: datetime) -> None:
        place = self.options.namespace, self.options.status_config_map_name
        meta: Untyped = {
            "namespace": place[0],
            "name": place[1],
            "annotations": {LAST_UPDATED: now.strftime("%Y-%m-%d %H:%M:%S.%f +0000 UTC")},
        }
        wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": told.data()}
        try:
            await client.patch(CONFIG_MAPS, *place, change=apply(wanted, MANAGER, force=True))
        except ClientError as error:
            log.warning("the status could not be written: %s", error)
            return
        self._written, self._due = told, now + SELDOM

    def _status(self, cloud: CloudState, plan: Plan, now: datetime) -> ClusterStatus:
        builder = self.builder
        registry, backoff = builder.registry, builder.backoff
        told: dict[str, list[str]] = {}
        for one in cloud.problems:
            told.setdefault(one.group, []).append(one.text)
        going = self.deletions().by_group()
        groups = tuple(
            GroupStatus(
                group=asked.group,
                state=registry.states[name],
                healthy=registry.group_is_healthy(name),
                rest=backoff.resting(name, now),
                in_progress=bool(len(registry.states[name].upcoming)),
                candidates=plan.candidates.get(name, 0),
                being_deleted=going[name],
                problems=(*builder.problems(name), *told.get(name, ())),
            )
            for name, asked in sorted(cloud.groups.items())
        )
        return ClusterStatus(
            healthy=registry.is_healthy(builder.node_states),
            needed=bool(plan.pending),
            message=plan.message,
            groups=groups,
        )
