"""VolumeBinding: claims must be bound to volumes that a node reaches, or be served there."""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.fit.plugins.arguments import Arguments, PluginArguments, ShapePoint, require
from bayplan.fit.plugins.plugin import BINDING, FILTERING, Cause, SchedulerPlugin
from bayplan.fit.plugins.volume_binding.claims import claim_steps
from bayplan.fit.plugins.volume_binding.explanation import EXPLAINER
from bayplan.fit.plugins.volume_binding.filter import (
    HINTS,
    NAME,
    compile_filter,
    refusal_before_nodes,
)
from bayplan.fit.profile import PluginSet
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.volumes.topology import zone_labels
from bayplan.kube.meta import Int64
from bayplan.kube.pods import Pod


@dataclass(frozen=True, slots=True)
class BindTimeout:
    """How long binding a pod's volumes may take."""

    seconds: float = 600.0


class VolumeBindingArgs(PluginArguments):
    """Arguments of VolumeBinding."""

    bind_timeout_seconds: Int64 = 600
    shape: list[ShapePoint] | None = None


def _compile(args: VolumeBindingArgs, field: str) -> BindTimeout:
    is_valid = args.bind_timeout_seconds >= 0
    require(is_valid, f"{field}.bindTimeoutSeconds", "must not be negative")
    problem = "needs Kubernetes' gate StorageCapacityScoring: not had here"
    require(args.shape is None, f"{field}.shape", problem)
    return BindTimeout(float(args.bind_timeout_seconds))


def _bind_timeout(plugins: PluginSet) -> float:
    return plugins.args_of(BindTimeout).seconds


def _zone_labels(pod: Pod, cluster: ClusterState) -> frozenset[str]:
    """Return the zone and region labels of the pod's volumes."""
    bound = cluster.storage.bound_volumes(pod)
    return frozenset(label for _, pv in bound for label in zone_labels(pv))


PLUGIN = SchedulerPlugin(
    name=NAME,
    points=(*FILTERING, *BINDING),
    node_fields=("metadata.name", "metadata.labels"),
    cause=Cause.VOLUMES,
    pre_filter=refusal_before_nodes,
    filters=(compile_filter,),
    arguments=Arguments(VolumeBindingArgs, _compile),
    bind_timeout=_bind_timeout,
    node_labels=_zone_labels,
    hints=HINTS,
    explainer=EXPLAINER,
    steps_before_nodes=claim_steps,
)
