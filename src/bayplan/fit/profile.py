"""What a snapshot is asked to obey: feature gates, and the rules that have more than two positions.

The default is Bayplan's own: the seeds' rules with every gate on. `Profile.kubernetes()` is what
kube-scheduler 1.36 does, for comparing the two. `Profile.by_scheduler()` judges every pod as the
scheduler would that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bayplan.fit.plugin_set import PluginSet
from bayplan.fit.rules import KUBERNETES, MissingDriver, VolumeRules
from bayplan.kube.gates import FeatureGates
from bayplan.kube.pods import Pod

__all__ = ["KUBE_SCHEDULER", "MissingDriver", "Profile"]

KUBE_SCHEDULER = PluginSet(volume_rules=KUBERNETES, deallocates_claims=True)
"""kube-scheduler's default profile, by its own rules."""
OUR_SCHEDULER = "bayplan"
"""The name that our scheduler serves unless it is told another."""


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
    knows_devices: bool = True
    """Whether ResourceClaims and DeviceClasses are told; if not, no pod with claims is judged."""

    def plugins_for(self, pod: Pod) -> PluginSet:
        """What a pod is filtered and scored by."""
        if not self.schedulers:
            return self.plugins
        return self.schedulers.get(pod.spec.scheduler_name, self.plugins)

    @property
    def rules(self) -> VolumeRules:
        """The rules about volumes, for all pods whose plugins have no others."""
        waits = self.gates.enabled("VolumeLimitScaling")
        return VolumeRules(
            missing_driver=self.missing_driver if waits else None,
            published_limits=self.gates.enabled("AttachVolumeLimit"),
            legacy_limits=self.legacy_limits,
            max_volumes_override=self.max_volumes_override,
        )

    def by_scheduler(self) -> Profile:
        """The same for pods of our scheduler, and kube-scheduler's for all others."""
        return replace(self, plugins=KUBE_SCHEDULER, schedulers={OUR_SCHEDULER: self.plugins})

    def as_kube_scheduler(self) -> Profile:
        """kube-scheduler's rules for every pod, whichever scheduler it names."""
        return replace(self, plugins=KUBE_SCHEDULER, schedulers={})

    @classmethod
    def kubernetes(cls, *, volume_limit_scaling: bool = False) -> Profile:
        """The rules of kube-scheduler 1.36, where VolumeLimitScaling is off by default."""
        gates = FeatureGates(
            {"VolumeLimitScaling": volume_limit_scaling, "AttachVolumeLimit": False}
        )
        return cls(gates=gates, missing_driver=MissingDriver.OPT_IN, legacy_limits=False)
