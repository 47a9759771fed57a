"""What the image manager needs of a cluster, and what it tells it: a few questions and events."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from bayplan.kube.pods import Container, Pod
from bayplan.kube.secrets import Secret
from bayplan.kube.workloads import RuntimeClass


class ClusterUnavailableError(Exception):
    """The API server could not be asked; the answer is not known."""


class EventKind(StrEnum):
    """Whether an event is good news."""

    NORMAL = "Normal"
    WARNING = "Warning"


class EventReason(StrEnum):
    """What happened, by the kubelet's names."""

    PULLING = "Pulling"
    PULLED = "Pulled"
    FAILED = "Failed"
    INSPECT_FAILED = "InspectFailed"
    NEVER_PULL = "ErrImageNeverPull"
    BACK_OFF = "BackOff"
    NO_SANDBOX = "FailedCreatePodSandBox"
    NO_PULL_SECRET = "FailedToRetrieveImagePullSecret"  # noqa: S105 - an event's name
    FREE_DISK_SPACE_FAILED = "FreeDiskSpaceFailed"
    INVALID_DISK_CAPACITY = "InvalidDiskCapacity"
    IMAGE_GC_FAILED = "ImageGCFailed"
    CLEAN_UP_OWED = "ImageCleanUpOwed"


@dataclass(frozen=True, slots=True)
class Subject:
    """What an event is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    container: str = ""

    @classmethod
    def of_container(cls, pod: Pod, container: Container) -> Subject:
        """A container of a pod."""
        return cls("Pod", pod.name, pod.namespace, pod.metadata.uid, container.name)


class EventSink(Protocol):
    """Where events go; publishing never fails the work that it tells of."""

    async def publish(
        self, subject: Subject, kind: EventKind, reason: EventReason, message: str
    ) -> None:
        """Tell of something that happened."""
        ...


class Cluster(Protocol):
    """The objects that decide how a pod's image is pulled."""

    async def runtime_class(self, name: str) -> RuntimeClass | None:
        """The runtime class, or None if there is none of that name."""
        ...

    async def secret(self, namespace: str, name: str) -> Secret | None:
        """The secret, or None if there is none of that name."""
        ...
