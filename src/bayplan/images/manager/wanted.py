"""What a container wants: its image, for the handler of its pod's runtime class."""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.images.credentials.records import PullKey
from bayplan.images.manager.cluster import Cluster, ClusterUnavailableError
from bayplan.images.manager.errors import CreatePodSandboxError, InvalidImageNameError
from bayplan.images.manager.policy import PullPolicy, effective_policy
from bayplan.images.runtime.objects import ImageSpec, PodIdentity
from bayplan.kube.imagereferences import InvalidReferenceError, with_default_tag
from bayplan.kube.pods import Container, Pod


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
