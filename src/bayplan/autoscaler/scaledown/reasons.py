"""Reasons of unremovable nodes and blocking pods: Cluster Autoscaler's names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class UnremovableReason(Enum):
    """Why a node is unremovable."""

    SCALE_DOWN_DISABLED_ANNOTATION = "ScaleDownDisabledAnnotation"
    SCALE_DOWN_UNREADY_DISABLED = "ScaleDownUnreadyDisabled"
    NOT_AUTOSCALED = "NotAutoscaled"
    NOT_UNNEEDED_LONG_ENOUGH = "NotUnneededLongEnough"
    NOT_UNREADY_LONG_ENOUGH = "NotUnreadyLongEnough"
    NODE_GROUP_MIN_SIZE_REACHED = "NodeGroupMinSizeReached"
    ATOMIC_SCALE_DOWN_FAILED = "AtomicScaleDownFailed"
    MINIMAL_RESOURCE_LIMIT_EXCEEDED = "MinimalResourceLimitExceeded"
    CURRENTLY_BEING_DELETED = "CurrentlyBeingDeleted"
    NOT_UNDERUTILIZED = "NotUnderutilized"
    NOT_UNNEEDED_OTHER_REASON = "NotUnneededOtherReason"
    RECENTLY_UNREMOVABLE = "RecentlyUnremovable"
    NO_PLACE_TO_MOVE_PODS = "NoPlaceToMovePods"
    BLOCKED_BY_POD = "BlockedByPod"
    UNEXPECTED_ERROR = "UnexpectedError"
    BLOCKED_BY_ON_COMPLETION_POD = "BlockedByOnCompletionPod"


class BlockingReason(Enum):
    """Why a pod blocks the removal of its node."""

    CONTROLLER_NOT_FOUND = "ControllerNotFound"
    MIN_REPLICAS_REACHED = "MinReplicasReached"
    NOT_REPLICATED = "NotReplicated"
    LOCAL_STORAGE_REQUESTED = "LocalStorageRequested"
    NOT_SAFE_TO_EVICT_ANNOTATION = "NotSafeToEvictAnnotation"
    UNMOVABLE_KUBE_SYSTEM_POD = "UnmovableKubeSystemPod"
    NOT_ENOUGH_PDB = "NotEnoughPdb"


@dataclass(frozen=True, slots=True)
class BlockingPod:
    """A pod that blocks the removal of its node."""

    pod: str
    reason: BlockingReason


@dataclass(frozen=True, slots=True)
class UnremovableNode:
    """An unremovable node, and why."""

    node: str
    reason: UnremovableReason
    blocking: BlockingPod | None = None
    detail: str = ""
    """Details, such as the pod that fits no other node or the remaining time."""

    def __str__(self) -> str:
        text = self.reason.value
        if self.blocking is not None:
            text += f" {self.blocking.pod} ({self.blocking.reason.value})"
        return f"{text}: {self.detail}" if self.detail else text
