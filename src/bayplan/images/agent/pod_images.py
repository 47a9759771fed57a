"""Images of the pods that are bound to a node: one task per pod, until all of them are present.

Init containers come first. Failed pulls are retried. The task of a deleted pod is cancelled, a
terminating pod gets no more images, and a pod whose images were changed gets a new task. The images
of live pods count as in use even before a container exists, so that they are not collected while
the pod starts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Set
from dataclasses import dataclass, field

from bayplan.base.clock import Clock
from bayplan.images.manager.manager import ImageManager, ImageReady, ImageWaiting
from bayplan.images.runtime.objects import ImageKey, ImageSpec, RuntimeCallError
from bayplan.kube.pods import Container, Pod

log = logging.getLogger(__name__)

RETRY_SECONDS = 10.0


@dataclass(slots=True)
class _PodTask:
    """The task of one pod."""

    images: tuple[str, ...]
    task: asyncio.Task[None]
    images_in_use: set[ImageKey]


@dataclass(slots=True)
class PodImages:
    """Keeps the images of a node's pods present; `lock` is shared with the GC manager."""

    manager: ImageManager
    clock: Clock
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _services: dict[str, _PodTask] = field(default_factory=dict)

    def pod_seen(self, pod: Pod) -> None:
        """Handle a pod that is bound to this node, or has changed."""
        service = self._services.get(pod.metadata.uid)
        if pod.is_terminal:
            self.pod_gone(pod.metadata.uid)
            return
        if pod.is_terminating:
            # It starts no more containers, but still uses the images it has.
            if service is not None:
                service.task.cancel()
            return
        images = tuple(container.image for container in _containers(pod))
        if service is None or service.images != images:
            self.pod_gone(pod.metadata.uid)
            images_in_use: set[ImageKey] = set()
            task = asyncio.ensure_future(self._serve(pod, images_in_use))
            self._services[pod.metadata.uid] = _PodTask(images, task, images_in_use)

    def pod_gone(self, uid: str) -> None:
        """Handle a pod that was deleted or has ended; its images may be collected."""
        service = self._services.pop(uid, None)
        if service is not None:
            service.task.cancel()

    async def in_use(self) -> Set[ImageKey]:
        """Return the images of live pods."""
        return frozenset().union(*(service.images_in_use for service in self._services.values()))

    async def settled(self) -> None:
        """Wait until every pod has all its images."""
        await asyncio.gather(*(service.task for service in self._services.values()))

    async def stop(self) -> None:
        """Cancel all tasks."""
        tasks = [service.task for service in self._services.values()]
        for uid in list(self._services):
            self.pod_gone(uid)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, pod: Pod, images_in_use: set[ImageKey]) -> None:
        for container in _containers(pod):
            while not await self._give(pod, container, images_in_use):
                pass

    async def _give(self, pod: Pod, container: Container, images_in_use: set[ImageKey]) -> bool:
        try:
            outcome = await self.manager.ensure_image_exists(pod, container)
        except OSError as error:
            outcome = ImageWaiting("ErrImagePull", f"pull records of the agent: {error}")
        if isinstance(outcome, ImageReady):
            return await self._claim(outcome.key, images_in_use)
        log.info(
            "container waits for its image: %s: %s",
            outcome.reason,
            outcome.message,
            extra={"pod": pod.key, "container": container.name},
        )
        await self.clock.sleep(outcome.retry_after or RETRY_SECONDS)
        return False

    async def _claim(self, key: ImageKey, images_in_use: set[ImageKey]) -> bool:
        """Mark the image as in use; return whether it was not collected meanwhile."""
        async with self.lock:
            images_in_use.add(key)
            try:
                image = await self.manager.runtime.image_status(ImageSpec(key.id, key.handler))
            except RuntimeCallError:
                return True
        return image is not None


def _containers(pod: Pod) -> list[Container]:
    return [*pod.spec.init_containers, *pod.spec.containers]
