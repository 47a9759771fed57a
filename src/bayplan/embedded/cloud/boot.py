"""Instances boot: each becomes a machine when its time comes, unless there was none in stock."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from bayplan.embedded.cloud.cloud import Cloud
from bayplan.embedded.control.controller import Controller, Do, Plan, RequeueAfter, Stage
from bayplan.embedded.nodes.fleet import Fleet
from bayplan.embedded.nodes.machines import Instance

STOCK_SECONDS = 5.0
"""How long a cloud takes to find out that it has none left."""


class Boot(Controller[str]):
    """Turns instances into machines; keyed by instance name."""

    name = "cloud"

    def __init__(self, stage: Stage, cloud: Cloud, fleet: Fleet) -> None:
        self._stage = stage
        self._cloud = cloud
        self._fleet = fleet

    def first(self) -> Iterable[str]:
        """All instances there are."""
        return list(self._cloud.instances)

    def decide(self, key: str) -> Plan:
        """See whether an instance fails, boots, or is gone."""
        one = self._cloud.instances.get(key)
        if one is None:
            return [Do(f"switch {key} off", partial(self._fleet.remove, key))]
        if one.state == "creating":
            return self._boot(one)
        if one.state == "running" and key not in self._fleet.machines:
            return [Do(f"switch {key} on", partial(self._fleet.add, one))]
        return []

    def _boot(self, one: Instance) -> Plan:
        now = self._stage.seconds()
        tried = min(one.launched + STOCK_SECONDS, one.starts or float("inf"))
        if now < tried:
            return [RequeueAfter(tried - now)]
        if self._stage.faults.find("stock-out", group=one.group.name, zone=one.zone):
            said = f"no {one.group.instance_type.name} left in {one.zone}"
            return [Do(f"fail {one.name}", partial(self._cloud.fail, one.name, said))]
        if one.starts is None:
            return []
        if now < one.starts:
            return [RequeueAfter(one.starts - now)]
        return [Do(f"start {one.name}", partial(self._cloud.start, one.name))]
