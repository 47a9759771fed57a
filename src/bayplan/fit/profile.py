"""What a snapshot is asked to obey: feature gates, and the rules that have more than two positions.

The default is Bayplan's own: the seeds' rules with every gate on. `Profile.kubernetes()` is what
kube-scheduler 1.36 does, for comparing the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from bayplan.fit.plugins import PluginSet
from bayplan.kube.gates import FeatureGates
from bayplan.kube.pods import Pod


class MissingDriver(Enum):
    """What a node without a CSI driver means to a pod that needs it (gate VolumeLimitScaling)."""

    HOLD_BACK = "hold-back"
    """The pod is refused, unless the driver opts out: preventPodSchedulingIfMissing is false."""
    OPT_IN = "opt-in"
    """The pod is refused only if the driver opts in: preventPodSchedulingIfMissing is true."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The rules of a snapshot."""

    gates: FeatureGates = field(default_factory=FeatureGates)
    missing_driver: MissingDriver = MissingDriver.HOLD_BACK
    legacy_limits: bool = True
    """Whether volumes that no CSI driver serves are limited at all, as they were before CSI."""
    max_volumes_override: int | None = None
    """What the environment variable KUBE_MAX_PD_VOLS says; it replaces the fallback table."""
    plugins: PluginSet = field(default_factory=PluginSet)
    """What pods are filtered and scored by, unless another set is asked for."""
    schedulers: Mapping[str, PluginSet] = field(default_factory=dict)
    """Other sets, for pods that name these schedulers."""

    def plugins_for(self, pod: Pod) -> PluginSet:
        """What a pod is filtered and scored by."""
        if not self.schedulers:
            return self.plugins
        return self.schedulers.get(pod.spec.scheduler_name, self.plugins)

    @classmethod
    def kubernetes(cls, *, volume_limit_scaling: bool = False) -> Profile:
        """The rules of kube-scheduler 1.36, where VolumeLimitScaling is off by default."""
        gates = FeatureGates(
            {"VolumeLimitScaling": volume_limit_scaling, "AttachVolumeLimit": False}
        )
        return cls(gates=gates, missing_driver=MissingDriver.OPT_IN, legacy_limits=False)
