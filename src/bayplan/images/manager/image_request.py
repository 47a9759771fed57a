"""A container's image request: its image, runtime handler, pull policy and credentials."""

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
from bayplan.images.credentials.providers.provider import CredentialProviders, RequestingPod
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
    """The API server could not be reached; the object is unknown."""


class ImageEventType(StrEnum):
    """The type of an event."""

    NORMAL = "Normal"
    WARNING = "Warning"


class ImageEventReason(StrEnum):
    """The reason of an event, by the kubelet's names."""

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
class InvolvedObject:
    """The object of an event."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    container: str = ""

    @classmethod
    def of_container(cls, pod: Pod, container: Container) -> InvolvedObject:
        """Return the object of a pod's container."""
        return cls("Pod", pod.name, pod.namespace, pod.metadata.uid, container.name)


class ImageEventSink(Protocol):
    """Publishes events; must not fail the work that they are about."""

    async def publish(
        self, subject: InvolvedObject, kind: ImageEventType, reason: ImageEventReason, message: str
    ) -> None:
        """Publish an event."""
        ...


class ClusterObjects(Protocol):
    """Reads the objects that decide how a pod's image is pulled."""

    async def runtime_class(self, name: str) -> RuntimeClass | None:
        """Return the runtime class; None if there is none of that name."""
        ...

    async def secret(self, namespace: str, name: str) -> Secret | None:
        """Return the secret; None if there is none of that name."""
        ...


class PullPolicy(StrEnum):
    """`imagePullPolicy` of a container."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"

    @property
    def checks_node_first(self) -> bool:
        """Whether the node is checked before the registry; Always leaves reuse to the runtime."""
        return self is not PullPolicy.ALWAYS


def effective_policy(written: str, image: str) -> PullPolicy:
    """Return the policy, or the API's default: Always for `latest`, else IfNotPresent.

    >>> effective_policy("", "busybox:1.35").value
    'IfNotPresent'
    """
    if written:
        return PullPolicy(written)
    reference = parse_image(image).with_default_tag()
    return PullPolicy.ALWAYS if reference.tag == DEFAULT_TAG else PullPolicy.IF_NOT_PRESENT


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """A container's image, with everything that decides how it is pulled."""

    pod: Pod
    container: Container
    spec: ImageSpec
    policy: PullPolicy

    @property
    def image(self) -> str:
        """The image name in the pod's spec."""
        return self.container.image

    @property
    def pull_key(self) -> PullKey:
        """The key of its pull records."""
        return PullKey(self.image, self.spec.handler)

    @property
    def backoff_key(self) -> str:
        """The key of its back-off: this pod, for this image."""
        return f"{self.pod.metadata.uid}_{self.image}"

    @property
    def pod_identity(self) -> PodIdentity:
        """The pod, for the sandbox config of the CRI."""
        return PodIdentity(self.pod.name, self.pod.namespace, self.pod.metadata.uid)


def image_request(pod: Pod, container: Container, handler: str) -> ImageRequest:
    """Return a container's image request; InvalidImageNameError if its name is not valid."""
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
    return ImageRequest(pod, container, spec, policy)


async def runtime_handler(pod: Pod, cluster: ClusterObjects) -> str:
    """Return the handler of the pod's runtime class; empty for a pod without one."""
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
    """An image's credentials: of the pod's pull secrets, the node's keyring, then plugins."""

    wanted: ImageRequest
    cluster: ClusterObjects
    events: ImageEventSink
    node_keyring: PodKeyring
    providers: CredentialProviders
    _found: Sequence[Credential] | None = field(default=None, repr=False)

    async def get(self) -> Sequence[Credential]:
        """Return the credentials to try, in order."""
        if self._found is None:
            image, pod = self.wanted.spec.image, self.wanted.pod
            asker = RequestingPod(self.wanted.pod_identity, pod.spec.service_account_name)
            given = [
                *credentials_for(await self._pod_keyring(), image),
                *credentials_for(self.node_keyring, image),
                *await self.providers.credentials(image, asker),
            ]
            self._found = list(dict.fromkeys(given))
        return self._found

    async def _pod_keyring(self) -> PodKeyring:
        """Return the keyring of the pod's pull secrets; report those that cannot be used."""
        keyring, problems = PodKeyring(), []
        for reference in self.wanted.pod.spec.image_pull_secrets:
            try:
                keyring += keyring_of_secret(await self._secret(reference.name))
            except (_NoSecretError, ValueError) as error:
                problems.append(str(error))
        if problems:
            await self._publish(problems)
        return keyring

    async def _secret(self, name: str) -> Secret:
        try:
            secret = await self.cluster.secret(self.wanted.pod.namespace, name)
        except ClusterUnavailableError as error:
            raise _NoSecretError(f"{name} ({error})") from error
        if secret is None:
            raise _NoSecretError(f"{name} (not found)")
        return secret

    async def _publish(self, problems: list[str]) -> None:
        message = f"Some image pull secrets cannot be used: {', '.join(problems)}"
        subject = InvolvedObject.of_container(self.wanted.pod, self.wanted.container)
        await self.events.publish(
            subject, ImageEventType.WARNING, ImageEventReason.NO_PULL_SECRET, message
        )


class _NoSecretError(Exception):
    """A pull secret cannot be read."""
