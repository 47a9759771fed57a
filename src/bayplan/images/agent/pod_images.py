"""Images for the pods that are bound to a node: one task a pod, until it has them all.

Init containers come first. Whatever has to wait is tried again; a pod that goes takes its task with
it, one that is being deleted gets nothing more, and one whose images were changed is served anew.
The images that live pods were given count as in use even before a container exists, so that none is
collected from under a pod that is starting.
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
class _Service:
    """What is done for one pod."""

    images: tuple[str, ...]
    task: asyncio.Task[None]
    given: set[ImageKey]


@dataclass(slots=True)
class PodImages:
    """Keeps the images of a node's pods present; `lock` is shared with the collector."""

    manager: ImageManager
    clock: Clock
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _services: dict[str, _Service] = field(default_factory=dict)

    def pod_seen(self, pod: Pod) -> None:
        """A pod is bound to this node, or has changed; one that has ended needs nothing more."""
        service = self._services.get(pod.metadata.uid)
        if pod.is_terminal:
            self.pod_gone(pod.metadata.uid)
            return
        if pod.is_terminating:
            # It starts nothing any more, but what it has it may still use.
            if service is not None:
                service.task.cancel()
            return
        images = tuple(container.image for container in _containers(pod))
        if service is None or service.images != images:
            self.pod_gone(pod.metadata.uid)
            given: set[ImageKey] = set()
            task = asyncio.ensure_future(self._serve(pod, given))
            self._services[pod.metadata.uid] = _Service(images, task, given)

    def pod_gone(self, uid: str) -> None:
        """A pod is gone; its images may be collected."""
        service = self._services.pop(uid, None)
        if service is not None:
            service.task.cancel()

    async def in_use(self) -> Set[ImageKey]:
        """The images that live pods were given."""
        return frozenset().union(*(service.given for service in self._services.values()))

    async def settled(self) -> None:
        """Wait until every pod has all its images."""
        await asyncio.gather(*(service.task for service in self._services.values()))

    async def stop(self) -> None:
        """End all work."""
        tasks = [service.task for service in self._services.values()]
        for uid in list(self._services):
            self.pod_gone(uid)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, pod: Pod, given: set[ImageKey]) -> None:
        for container in _containers(pod):
            while not await self._give(pod, container, given):
                pass

    async def _give(self, pod: Pod, container: Container, given: set[ImageKey]) -> bool:
        try:
            outcome = await self.manager.ensure_image_exists(pod, container)
        except OSError as error:
            outcome = ImageWaiting("ErrImagePull", f"the agent's own records: {error}")
        if isinstance(outcome, ImageReady):
            return await self._claim(outcome.key, given)
        log.info("%s/%s waits: %s: %s", pod.key, container.name, outcome.reason, outcome.message)
        await self.clock.sleep(outcome.retry_after or RETRY_SECONDS)
        return False

    async def _claim(self, key: ImageKey, given: set[ImageKey]) -> bool:
        """Mark the image as used, if it was not collected since it was found."""
        async with self.lock:
            given.add(key)
            try:
                image = await self.manager.runtime.image_status(ImageSpec(key.id, key.handler))
            except RuntimeCallError:
                return True
        return image is not None


def _containers(pod: Pod) -> list[Container]:
    return [*pod.spec.init_containers, *pod.spec.containers]
