"""The image manager: ensures that a container's image is on the node before it starts.

    resolve the pod's runtime class to its handler
      → look for (image, handler) on the node, unless the policy is Always
        → present: may this pod use it? (credential verification)
        → not present, or not for this pod: pull it, with back-off, rate limit and credentials

The result is `ImageReady`, or `ImageWaiting` with the reason that the kubelet would show. With the
gate `RuntimeClassInImageCriApi` off no runtime class is read and no handler is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from bayplan.base.clock import Clock
from bayplan.images.credentials.keyring import PodKeyring
from bayplan.images.credentials.providers.provider import CredentialProviders
from bayplan.images.credentials.pull_manager import ImagePullManager
from bayplan.images.manager.errors import (
    CreatePodSandboxError,
    ErrImageNeverPullError,
    ErrImagePullError,
    ImageError,
    ImageInspectError,
    ImagePullBackOffError,
    InvalidImageNameError,
    pull_error,
)
from bayplan.images.manager.image_request import (
    ClusterObjects,
    ImageEventReason,
    ImageEventSink,
    ImageEventType,
    ImageRequest,
    InvolvedObject,
    PodCredentials,
    PullPolicy,
    image_request,
    runtime_handler,
)
from bayplan.images.manager.metrics import ImageMetrics
from bayplan.images.manager.pulls import ImagePuller, KeyedBackoff, PullFailedError, PullResult
from bayplan.images.runtime.objects import Image, ImageKey, ImageRuntime, RuntimeCallError
from bayplan.kube.pods import Container, Pod


@dataclass(frozen=True, slots=True)
class ImageReady:
    """The image is present for this container."""

    key: ImageKey
    message: str = ""
    pulled: bool = False


@dataclass(frozen=True, slots=True)
class ImageWaiting:
    """The container has to wait, and why; `retry_after` is 0 if unknown."""

    reason: str
    message: str
    retry_after: float = 0.0


@dataclass(slots=True)
class _Observed:
    """The labels of a request's metric; None if unknown."""

    present: bool | None = None
    pull_required: bool | None = None


@dataclass(frozen=True, slots=True)
class ImageManager:
    """Ensures the images of the containers of one node."""

    runtime: ImageRuntime
    cluster: ClusterObjects
    events: ImageEventSink
    pull_manager: ImagePullManager
    puller: ImagePuller
    backoff: KeyedBackoff
    metrics: ImageMetrics
    clock: Clock
    node_keyring: PodKeyring = field(default_factory=PodKeyring)
    providers: CredentialProviders = field(default_factory=CredentialProviders)
    use_handlers: bool = True

    async def ensure_image_exists(
        self, pod: Pod, container: Container
    ) -> ImageReady | ImageWaiting:
        """Ensure that the container's image is present; pull it if necessary."""
        observed = _Observed()
        policy = container.image_pull_policy
        try:
            request = await self._image_request(pod, container)
            policy = request.policy
            return await self._ensure(request, observed)
        except ImagePullBackOffError as error:
            return ImageWaiting(error.reason, error.message, error.retry_after)
        except ImageError as error:
            return ImageWaiting(error.reason, error.message)
        finally:
            self.metrics.ensured(policy, observed.present, observed.pull_required)

    async def _image_request(self, pod: Pod, container: Container) -> ImageRequest:
        publish = partial(
            self._publish, InvolvedObject.of_container(pod, container), ImageEventType.WARNING
        )
        try:
            handler = await runtime_handler(pod, self.cluster) if self.use_handlers else ""
            return image_request(pod, container, handler)
        except CreatePodSandboxError as error:
            await publish(ImageEventReason.NO_SANDBOX, error.message)
            raise
        except InvalidImageNameError as error:
            await publish(ImageEventReason.INSPECT_FAILED, error.message)
            raise

    async def _ensure(self, request: ImageRequest, observed: _Observed) -> ImageReady:
        credentials = PodCredentials(
            request, self.cluster, self.events, self.node_keyring, self.providers
        )
        image = await self._find_image(request, observed)
        if image and not await self._must_pull(request, image.key, credentials):
            observed.pull_required = False
            message = f'Image "{request.image}" is on the node already, and the pod may use it'
            await self._record_event(
                request, ImageEventType.NORMAL, ImageEventReason.PULLED, message
            )
            return ImageReady(image.key, message)
        observed.pull_required = True
        if request.policy is PullPolicy.NEVER:
            # Also for an image that is present for other pods: its presence is not revealed.
            raise await self._never_pull(request)
        return await self._pull(request, credentials)

    async def _find_image(self, request: ImageRequest, observed: _Observed) -> Image | None:
        """Return the image if the node has it for this handler and the policy allows its use."""
        if not request.policy.checks_node_first:
            return None
        try:
            image = await self.runtime.image_status(request.spec)
        except RuntimeCallError as error:
            message = f'Failed to inspect image "{request.image}": {error}'
            await self._record_event(
                request, ImageEventType.WARNING, ImageEventReason.INSPECT_FAILED, message
            )
            raise ImageInspectError(message) from error
        observed.present = image is not None
        if image is None and request.policy is PullPolicy.NEVER:
            raise await self._never_pull(request)
        return image

    async def _must_pull(
        self, request: ImageRequest, image: ImageKey, credentials: PodCredentials
    ) -> bool:
        result = await self.pull_manager.must_attempt_pull(request.pull_key, image, credentials.get)
        self.metrics.checked(result)
        return result.must_pull

    async def _never_pull(self, request: ImageRequest) -> ErrImageNeverPullError:
        message = f'Image "{request.image}" is not on the node, and its pull policy is Never'
        await self._record_event(
            request, ImageEventType.WARNING, ImageEventReason.NEVER_PULL, message
        )
        return ErrImageNeverPullError(message)

    async def _pull(self, request: ImageRequest, credentials: PodCredentials) -> ImageReady:
        await self._respect_backoff(request)
        message = f'Pulling image "{request.image}"'
        await self._record_event(request, ImageEventType.NORMAL, ImageEventReason.PULLING, message)
        asked_at = self.clock.monotonic()
        pulled = await self._recorded_pull(request, credentials)
        waited = self.clock.monotonic() - asked_at
        message = (
            f'Successfully pulled image "{request.image}" in {pulled.seconds:.3f}s '
            f"({waited:.3f}s with waiting), {pulled.size} bytes"
        )
        await self._record_event(request, ImageEventType.NORMAL, ImageEventReason.PULLED, message)
        self.metrics.pulled(pulled.size, waited)
        self.backoff.forget_expired(self.clock.monotonic())
        return ImageReady(pulled.key, message, pulled=True)

    async def _respect_backoff(self, request: ImageRequest) -> None:
        remaining = self.backoff.remaining(request.backoff_key, self.clock.monotonic())
        if not remaining:
            return
        message = f'Back-off pulling image "{request.image}"'
        await self._record_event(request, ImageEventType.NORMAL, ImageEventReason.BACK_OFF, message)
        cause = self.backoff.cause(request.backoff_key)
        raise ImagePullBackOffError(f"{message}: {cause}", remaining)

    async def _recorded_pull(
        self, request: ImageRequest, credentials: PodCredentials
    ) -> PullResult:
        """Pull between the record of the intent and that of the result."""
        try:
            self.pull_manager.record_pull_intent(request.pull_key)
        except OSError as error:
            message = f'Failed to record image pull intent for "{request.image}": {error}'
            raise ErrImagePullError(message) from error
        try:
            pulled = await self.puller.pull(
                request.spec, await credentials.get(), request.pod_identity
            )
        except PullFailedError as error:
            self.pull_manager.record_pull_failed(request.pull_key)
            raise await self._pull_failed(request, str(error)) from error
        except BaseException:
            self.pull_manager.record_pull_failed(request.pull_key)
            raise
        self.pull_manager.record_image_pulled(request.pull_key, pulled.key, pulled.credential)
        self.metrics.records(*self.pull_manager.counts())
        return pulled

    async def _pull_failed(self, request: ImageRequest, problem: str) -> ImageError:
        message = f'Failed to pull image "{request.image}": {problem}'
        await self._record_event(request, ImageEventType.WARNING, ImageEventReason.FAILED, message)
        error = pull_error(request.image, problem)
        cause = f"{error.reason}: {error.message}"
        self.backoff.failed(request.backoff_key, self.clock.monotonic(), cause)
        return error

    async def _record_event(
        self, request: ImageRequest, kind: ImageEventType, reason: ImageEventReason, message: str
    ) -> None:
        await self._publish(
            InvolvedObject.of_container(request.pod, request.container), kind, reason, message
        )

    async def _publish(
        self, subject: InvolvedObject, kind: ImageEventType, reason: ImageEventReason, message: str
    ) -> None:
        await self.events.publish(subject, kind, reason, message)
