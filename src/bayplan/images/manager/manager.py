"""The image manager: makes sure that a container's image is on the node before it starts.

    resolve the pod's runtime class to its handler
      → look for (image, handler) on the node, unless the policy is Always
        → there: may this pod have it? (credential verification)
        → not there, or not for this pod: pull it, with back-off, rate, line and credentials

The outcome is a value: `ImageReady`, or `ImageWaiting` with the reason that the kubelet would show.
With the gate `RuntimeClassInImageCriApi` off no runtime class is looked up and no handler is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from bayplan.base.clock import Clock
from bayplan.images.credentials.keyring import PodKeyring
from bayplan.images.credentials.memory import PullMemory
from bayplan.images.credentials.providers.provider import Providers
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
from bayplan.images.manager.metrics import ImageMetrics
from bayplan.images.manager.pulls import KeyedBackoff, Pulled, Puller, PullFailedError
from bayplan.images.manager.wanted import (
    Cluster,
    EventKind,
    EventReason,
    EventSink,
    PodCredentials,
    PullPolicy,
    Subject,
    WantedImage,
    runtime_handler,
    wanted_image,
)
from bayplan.images.runtime.objects import Image, ImageKey, ImageRuntime, RuntimeCallError
from bayplan.kube.pods import Container, Pod


@dataclass(frozen=True, slots=True)
class ImageReady:
    """The image is there for this container."""

    key: ImageKey
    message: str = ""
    pulled: bool = False


@dataclass(frozen=True, slots=True)
class ImageWaiting:
    """The container has to wait, and why; `retry_after` is 0 if nothing is known."""

    reason: str
    message: str
    retry_after: float = 0.0


@dataclass(slots=True)
class _Observed:
    """What of a request is counted; None is "not known"."""

    present: bool | None = None
    pull_required: bool | None = None


@dataclass(frozen=True, slots=True)
class ImageManager:
    """Answers `ensure_image_exists` for the containers of one node."""

    runtime: ImageRuntime
    cluster: Cluster
    events: EventSink
    memory: PullMemory
    puller: Puller
    backoff: KeyedBackoff
    metrics: ImageMetrics
    clock: Clock
    node_keyring: PodKeyring = field(default_factory=PodKeyring)
    providers: Providers = field(default_factory=Providers)
    use_handlers: bool = True

    async def ensure_image_exists(
        self, pod: Pod, container: Container
    ) -> ImageReady | ImageWaiting:
        """Make sure that the container's image is there, pulling it if it has to be."""
        observed = _Observed()
        policy = container.image_pull_policy
        try:
            wanted = await self._wanted(pod, container)
            policy = wanted.policy
            return await self._ensure(wanted, observed)
        except ImagePullBackOffError as error:
            return ImageWaiting(error.reason, error.message, error.retry_after)
        except ImageError as error:
            return ImageWaiting(error.reason, error.message)
        finally:
            self.metrics.ensured(policy, observed.present, observed.pull_required)

    async def _wanted(self, pod: Pod, container: Container) -> WantedImage:
        tell = partial(self._tell, Subject.of_container(pod, container), EventKind.WARNING)
        try:
            handler = await runtime_handler(pod, self.cluster) if self.use_handlers else ""
            return wanted_image(pod, container, handler)
        except CreatePodSandboxError as error:
            await tell(EventReason.NO_SANDBOX, error.message)
            raise
        except InvalidImageNameError as error:
            await tell(EventReason.INSPECT_FAILED, error.message)
            raise

    async def _ensure(self, wanted: WantedImage, observed: _Observed) -> ImageReady:
        credentials = PodCredentials(
            wanted, self.cluster, self.events, self.node_keyring, self.providers
        )
        image = await self._look(wanted, observed)
        if image and not await self._must_pull(wanted, image.key, credentials):
            observed.pull_required = False
            message = f'Image "{wanted.image}" is on the node already, and the pod may use it'
            await self._tell_of(wanted, EventKind.NORMAL, EventReason.PULLED, message)
            return ImageReady(image.key, message)
        observed.pull_required = True
        if wanted.policy is PullPolicy.NEVER:
            # Also said of an image that is there for others: its presence is not to be revealed.
            raise await self._never_pull(wanted)
        return await self._pull(wanted, credentials)

    async def _look(self, wanted: WantedImage, observed: _Observed) -> Image | None:
        """The image, if the node has it for this handler and the policy is to look."""
        if not wanted.policy.looks_first:
            return None
        try:
            image = await self.runtime.image_status(wanted.spec)
        except RuntimeCallError as error:
            message = f'Failed to inspect image "{wanted.image}": {error}'
            await self._tell_of(wanted, EventKind.WARNING, EventReason.INSPECT_FAILED, message)
            raise ImageInspectError(message) from error
        observed.present = image is not None
        if image is None and wanted.policy is PullPolicy.NEVER:
            raise await self._never_pull(wanted)
        return image

    async def _must_pull(
        self, wanted: WantedImage, image: ImageKey, credentials: PodCredentials
    ) -> bool:
        verdict = await self.memory.verdict(wanted.pull_key, image, credentials.get)
        self.metrics.checked(verdict)
        return verdict.must_pull

    async def _never_pull(self, wanted: WantedImage) -> ErrImageNeverPullError:
        message = f'Image "{wanted.image}" is not on the node, and its pull policy is Never'
        await self._tell_of(wanted, EventKind.WARNING, EventReason.NEVER_PULL, message)
        return ErrImageNeverPullError(message)

    async def _pull(self, wanted: WantedImage, credentials: PodCredentials) -> ImageReady:
        await self._respect_backoff(wanted)
        message = f'Pulling image "{wanted.image}"'
        await self._tell_of(wanted, EventKind.NORMAL, EventReason.PULLING, message)
        asked_at = self.clock.monotonic()
        pulled = await self._recorded_pull(wanted, credentials)
        waited = self.clock.monotonic() - asked_at
        message = (
            f'Successfully pulled image "{wanted.image}" in {pulled.seconds:.3f}s '
            f"({waited:.3f}s with waiting), {pulled.size} bytes"
        )
        await self._tell_of(wanted, EventKind.NORMAL, EventReason.PULLED, message)
        self.metrics.pulled(pulled.size, waited)
        self.backoff.forget_expired(self.clock.monotonic())
        return ImageReady(pulled.key, message, pulled=True)

    async def _respect_backoff(self, wanted: WantedImage) -> None:
        remaining = self.backoff.remaining(wanted.backoff_key, self.clock.monotonic())
        if not remaining:
            return
        message = f'Back-off pulling image "{wanted.image}"'
        await self._tell_of(wanted, EventKind.NORMAL, EventReason.BACK_OFF, message)
        cause = self.backoff.cause(wanted.backoff_key)
        raise ImagePullBackOffError(f"{message}: {cause}", remaining)

    async def _recorded_pull(self, wanted: WantedImage, credentials: PodCredentials) -> Pulled:
        """Pull between an announcement and its closing, however the pull ends."""
        try:
            self.memory.begin(wanted.pull_key)
        except OSError as error:
            message = f'Failed to record image pull intent for "{wanted.image}": {error}'
            raise ErrImagePullError(message) from error
        try:
            pulled = await self.puller.pull(
                wanted.spec, await credentials.get(), wanted.pod_identity
            )
        except PullFailedError as error:
            self.memory.failed(wanted.pull_key)
            raise await self._pull_failed(wanted, str(error)) from error
        except BaseException:
            self.memory.failed(wanted.pull_key)
            raise
        self.memory.succeeded(wanted.pull_key, pulled.key, pulled.credential)
        self.metrics.records(*self.memory.counts())
        return pulled

    async def _pull_failed(self, wanted: WantedImage, problem: str) -> ImageError:
        message = f'Failed to pull image "{wanted.image}": {problem}'
        await self._tell_of(wanted, EventKind.WARNING, EventReason.FAILED, message)
        error = pull_error(wanted.image, problem)
        cause = f"{error.reason}: {error.message}"
        self.backoff.failed(wanted.backoff_key, self.clock.monotonic(), cause)
        return error

    async def _tell_of(
        self, wanted: WantedImage, kind: EventKind, reason: EventReason, message: str
    ) -> None:
        await self._tell(Subject.of_container(wanted.pod, wanted.container), kind, reason, message)

    async def _tell(
        self, subject: Subject, kind: EventKind, reason: EventReason, message: str
    ) -> None:
        await self.events.publish(subject, kind, reason, message)
