"""The rules about volumes that schedulers differ in: ours, and kube-scheduler's.

A snapshot has the rules of its profile. A set of plugins may have others, so that pods of several
schedulers are each judged by their own in one snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
    """What the environment variable KUBE_MAX_PD_VOLS says; it replaces the fallback table."""


KUBERNETES_VERSION = "1.36.4"
KUBERNETES = VolumeRules(missing_driver=None, published_limits=False, legacy_limits=False)
"""Those of kube-scheduler of that version with its default gates: it has VolumeLimitScaling as an
alpha feature, and knows no limits but a CSINode's.
"""
