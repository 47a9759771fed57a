"""What a container wants: its image, for its pod's handler, by its policy, with its credentials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from bayplan.images.credentials.keyring import (
    Credential,
    PodKeyring,
    credentials_for,
    keyring_of_secret,
)
from bayplan.images.credentials.providers.provider import Asker, Providers
from bayplan.images.credentials.records import PullKey
from bayplan.images.manager.errors import CreatePodSandboxError, InvalidImageNameError
from bayplan.images.runtime.objects import ImageSpec, PodIdentity
from bayplan.kube.imagereferences import (
    DEFAULT_TAG,
    InvalidReferenceError,
    parse_image,
    with_default_tag,
)
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


class PullPolicy(StrEnum):
    """`imagePullPolicy` of a container."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"

    @property
    def looks_first(self) -> bool:
        """Whether the node is asked before the registry; Always leaves re-use to the runtime."""
        return self is not PullPolicy.ALWAYS


def effective_policy(written: str, image: str) -> PullPolicy:
    """The policy as written, or the API's default: Always for `latest`, else IfNotPresent.

    >>> effective_policy("", "busybox:1.35").value
    'IfNotPresent'
    """
    if written:
        return PullPolicy(written)
    reference = parse_image(image).with_default_tag()
    return PullPolicy.ALWAYS if reference.tag == DEFAULT_TAG else PullPolicy.IF_NOT_PRESENT


@dataclass(frozen=True, slots=True)
class WantedImage:
    """One container's image, with everything that decides how it is pulled."""

    pod: Pod
    container: Container
    spec: ImageSpec
    policy: PullPolicy

    @property
    def image(self) -> str:
        """The name as the pod wrote it."""
        return self.container.image

    @property
    def pull_key(self) -> PullKey:
        """What is remembered of its pull."""
        return PullKey(self.image, self.spec.handler)

    @property
    def backoff_key(self) -> str:
        """Who has to wait after a failure: this pod, for this image."""
        return f"{self.pod.metadata.uid}_{self.image}"

    @property
    def pod_identity(self) -> PodIdentity:
        """The pod, as the runtime is told of it."""
        return PodIdentity(self.pod.name, self.pod.namespace, self.pod.metadata.uid)


def wanted_image(pod: Pod, container: Container, handler: str) -> WantedImage:
    """What a container wants; a name that cannot be read is an error."""
    try:
        spec = ImageSpec(
            image=with_default_tag(container.image),
            handler=handler,
            annotations=pod.metadata.annotations,
            user_specified_image=container.image,
        )
        policy = effective_policy(container.image_pull_policy, container.image)
    except InvalidReferenceError as error:
        raise InvalidImageNameError(f"image of container {container.name}: {error}") from error
    return WantedImage(pod, container, spec, policy)


async def runtime_handler(pod: Pod, cluster: Cluster) -> str:
    """The handler of the pod's runtime class; empty for a pod without one."""
    name = pod.spec.runtime_class_name
    if not name:
        return ""
    try:
        runtime_class = await cluster.runtime_class(name)
    except ClusterUnavailableError as error:
        raise CreatePodSandboxError(f'cannot read RuntimeClass "{name}": {error}') from error
    if runtime_class is None:
        raise CreatePodSandboxError(f'RuntimeClass "{name}" not found')
    return runtime_class.handler


@dataclass(slots=True)
class PodCredentials:
    """What the pod's pull secrets, then the node's own, then its plugins offer for an image."""

    wanted: WantedImage
    cluster: Cluster
    events: EventSink
    node_keyring: PodKeyring
    providers: Providers
    _found: Sequence[Credential] | None = field(default=None, repr=False)

    async def get(self) -> Sequence[Credential]:
        """The credentials to try, in turn."""
        if self._found is None:
            image, pod = self.wanted.spec.image, self.wanted.pod
            asker = Asker(self.wanted.pod_identity, pod.spec.service_account_name)
            given = [
                *credentials_for(await self._pod_keyring(), image),
                *credentials_for(self.node_keyring, image),
                *await self.providers.credentials(image, asker),
            ]
            self._found = list(dict.fromkeys(given))
        return self._found

    async def _pod_keyring(self) -> PodKeyring:
        """A secret that is missing or unreadable is told of, and the others are used."""
        keyring, problems = PodKeyring(), []
        for reference in self.wanted.pod.spec.image_pull_secrets:
            try:
                keyring += keyring_of_secret(await self._secret(reference.name))
            except (_NoSecretError, ValueError) as error:
                problems.append(str(error))
        if problems:
            await self._tell(problems)
        return keyring

    async def _secret(self, name: str) -> Secret:
        try:
            secret = await self.cluster.secret(self.wanted.pod.namespace, name)
        except ClusterUnavailableError as error:
            raise _NoSecretError(f"{name} ({error})") from error
        if secret is None:
            raise _NoSecretError(f"{name} (not found)")
        return secret

    async def _tell(self, problems: list[str]) -> None:
        message = f"Some image pull secrets cannot be used: {', '.join(problems)}"
        subject = Subject.of_container(self.wanted.pod, self.wanted.container)
        await self.events.publish(subject, EventKind.WARNING, EventReason.NO_PULL_SECRET, message)


class _NoSecretError(Exception):
    """A pull secret cannot be had."""
