"""What files and objects say of node groups in the same words: taints, and how to scale."""

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
        """The taint; FieldProblem if it cannot be one."""
        check_labels({self.key: self.value}, path)
        return Taint(key=self.key, effect=self.effect, value=self.value)


class OptionsSection(Section):
    """How a group wants to be scaled; what is not said is left to the autoscaler."""

    scale_down_utilization_threshold: Share | None = None
    """A node with less of its cpu and memory requested may be given back."""
    scale_down_gpu_utilization_threshold: Share | None = None
    """The same of its GPUs."""
    scale_down_unneeded_time: Duration | None = None
    """How long a node is not needed before it goes."""
    scale_down_unready_time: Duration | None = None
    """The same of a node that is not ready."""
    max_node_provision_time: Duration | None = None
    """How long an instance may take to become a node."""
    max_node_startup_time: Duration | None = None
    """How long a node may take to become ready."""
    zero_or_max_node_scaling: bool | None = None
    """All of the group at once, or none."""
    ignore_daemon_sets_utilization: bool | None = None
    """What DaemonSets request does not count as use."""

    def options(self, path: str) -> dict[str, float | bool]:
        """Those that are said, times in seconds."""
        found: dict[str, float | bool] = {}
        for field in msgspec.structs.fields(self):
            said = getattr(self, field.name)
            if said is not None:
                is_time = field.name.endswith("_time")
                place = f"{path}.{field.encode_name}"
                found[field.name] = seconds(said, place) if is_time else said
        return found
