"""Sections about node groups that files and objects share: taints and autoscaling options."""

from __future__ import annotations

from typing import Annotated

import msgspec

from bayplan.kube.configvalues import Duration, Section, check_labels, seconds
from bayplan.kube.nodes import Taint, TaintEffect

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class TaintSection(Section):
    """A taint of a group's nodes."""

    key: str
    effect: TaintEffect
    value: str = ""

    def taint(self, path: str) -> Taint:
        """Return the taint; FieldProblem if it is invalid."""
        check_labels({self.key: self.value}, path)
        return Taint(key=self.key, effect=self.effect, value=self.value)


class OptionsSection(Section):
    """Autoscaling options of a group; those left out are the autoscaler's defaults."""

    scale_down_utilization_threshold: Share | None = None
    """A node whose cpu and memory utilization is lower may be removed."""
    scale_down_gpu_utilization_threshold: Share | None = None
    """The same for its GPUs."""
    scale_down_unneeded_time: Duration | None = None
    """How long a node must be unneeded before it is removed."""
    scale_down_unready_time: Duration | None = None
    """The same for a node that is not ready."""
    max_node_provision_time: Duration | None = None
    """How long an instance may take to become a node."""
    max_node_startup_time: Duration | None = None
    """How long a node may take to become ready."""
    zero_or_max_node_scaling: bool | None = None
    """The group is scaled from zero to its maximum and back, never in between."""
    ignore_daemon_sets_utilization: bool | None = None
    """Requests of DaemonSet pods do not count as utilization."""

    def options(self, path: str) -> dict[str, float | bool]:
        """Return the options that are set, times in seconds."""
        found: dict[str, float | bool] = {}
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                is_time = field.name.endswith("_time")
                where = f"{path}.{field.encode_name}"
                found[field.name] = seconds(value, where) if is_time else value
        return found
