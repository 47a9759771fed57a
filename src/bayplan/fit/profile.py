"""What a snapshot obeys: feature gates, rules about volumes, and the plugins of each scheduler.

The default is Bayplan's own, with every gate on. `Profile.kubernetes()` is what
kube-scheduler 1.36 does, for comparing the two. `Profile.by_scheduler()` judges every pod as the
scheduler would that it names.

A set of plugins has the filters that run, the weights of scores, and the plugins' arguments. It is
a value, so that several can be used with one snapshot, and answers for one are never taken for
another's. The rules about volumes are those that schedulers differ in: a snapshot has those of its
profile, and a set of plugins may have others.

`CacheLimits` bounds what a snapshot keeps of what it could work out again: a matter of speed and
memory, never of answers; tests hand in small ones to show that.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeVar

from bayplan.kube.gates import FeatureGates
from bayplan.kube.pods import Pod


class MissingDriver(Enum):
    """What a node without a CSI driver means to a pod that needs it (gate VolumeLimitScaling)."""

    HOLD_BACK = "hold-back"
    """The pod is refused, unless the driver opts out: preventPodSchedulingIfMissing is false."""
    OPT_IN = "opt-in"
    """The pod is refused only if the driver opts in: preventPodSchedulingIfMissing is true."""


@dataclass(frozen=True, slots=True)
class VolumeRules:
    """How drivers that are missing, and limits, are taken."""

    missing_driver: MissingDriver | None = MissingDriver.HOLD_BACK
    """None if a missing driver never matters (VolumeLimitScaling is off)."""
    published_limits: bool = True
    """Whether limits in a node's allocatable count (AttachVolumeLimit)."""
    legacy_limits: bool = True
    """Whether volumes that no CSI driver serves are limited at all, as they were before CSI."""
    max_volumes_override: int | None = None
    """The environment variable KUBE_MAX_PD_VOLS; it replaces the fallback table."""
    attached_once: bool = True
    """Whether a volume that is still attached to a node takes no second attach slot there for its
    own pod. kube-scheduler counts it again.
    """


KUBERNETES_VERSION = "1.36.4"
KUBERNETES = VolumeRules(
    missing_driver=None, published_limits=False, legacy_limits=False, attached_once=False
)
"""Those of kube-scheduler of that version with its default gates: it has VolumeLimitScaling as an
alpha feature, and knows no limits but a CSINode's.
"""


MOST_WEIGHT = 10_000
"""A larger weight counts as this: the sum of all scores must fit into a rank."""


A = TypeVar("A")
CompiledArgs = tuple[Hashable, ...]
"""Arguments as plugins read them, at most one of a type."""


@dataclass(frozen=True, slots=True)
class PluginSet:
    """What pods are filtered and scored by."""

    filters: frozenset[str] | None = None
    """The names of those that are asked; None is those of the default profile."""
    scores: tuple[tuple[str, int], ...] | None = None
    """Names and weights of the scores that count; None is those of the default profile."""
    args: CompiledArgs = ()
    """The compiled arguments of plugins, at most one of a type; those missing are the defaults."""
    volume_rules: VolumeRules | None = None
    """None is the profile's."""
    reports_post_filters: bool = False
    """Whether messages have the words of kube-scheduler's PostFilter plugins that come before
    preemption.
    """

    def asks(self, filter_name: str) -> bool:
        """Whether a filter runs."""
        return self.filters is None or filter_name in self.filters

    def args_of(self, kind: type[A]) -> A:
        """The compiled arguments of a type; the defaults, if there are none of it."""
        return next((one for one in self.args if isinstance(one, kind)), None) or kind()


DEFAULT_PLUGINS = PluginSet()


__all__ = ["KUBE_SCHEDULER", "MissingDriver", "Profile"]

KUBE_SCHEDULER = PluginSet(volume_rules=KUBERNETES, reports_post_filters=True)
"""kube-scheduler's default profile, by its own rules."""
OUR_SCHEDULER = "bayplan"
"""The name that our scheduler serves by default."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The rules of a snapshot."""

    gates: FeatureGates = field(default_factory=FeatureGates)
    missing_driver: MissingDriver = MissingDriver.HOLD_BACK
    legacy_limits: bool = True
    """Whether volumes that no CSI driver serves are limited at all, as they were before CSI."""
    max_volumes_override: int | None = None
    """The environment variable KUBE_MAX_PD_VOLS; it replaces the fallback table."""
    plugins: PluginSet = field(default_factory=PluginSet)
    """What pods are filtered and scored by, unless another set is asked for."""
    schedulers: Mapping[str, PluginSet] = field(default_factory=dict)
    """Other sets, for pods that name these schedulers."""
    knows_devices: bool = True
    """Whether ResourceClaims and DeviceClasses are observed; if not, no pod with claims is
    judged.
    """

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
            attached_once=waits and self.missing_driver is MissingDriver.HOLD_BACK,
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


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """The most of each thing that is kept."""

    signatures: int = 100_000
    """Signatures of pods, and what is known of each."""
    evaluation_bytes: int = 256 * 1024 * 1024
    """What evaluations may take; the least recently asked are dropped first."""
    changes: int = 1 << 16
    """Changed slots that are remembered one by one."""
    counters: int = 5000
    """Standing counts of pods by domain or by node."""
    idle_terms: int = 1000
    """As long as there are no more terms than this, those that no pod has any more do no harm."""
    node_sets: int = 10_000
    """Sets of nodes by a condition."""
    requirements: int = 100_000
    """Distinct needs of storage."""
    claims: int = 500_000
    """Claims whose facts are known."""
    storage_classes: int = 1000
    """Classes whose open volumes are known by node."""
