"""The clean-up after the gate was switched: remove images, restart pods, remove the rest.

Only pods with a runtime class got other images because of the gate; those without a controller are
left alone unless requested. All images are removed but pinned ones and those of a pod that stays: a
pod without a runtime class uses the default handler's images, which do not depend on the gate.

    remove the stale images that are not in use, each by its handler
      → delete the pods that have a runtime class (their controllers create new ones)
        → wait until their images are not in use, and remove those as well
          → prune the records of removed images, and record that the clean-up is done

Which images are stale and which pods are restarted is decided first, by pure functions. A handler's
image that stays (in use, or its removal failed) and a pod that is left alone keep the clean-up
open; an image of the default handler that is in use does not, it is the right one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from bayplan.base.clock import Clock
from bayplan.images.agent.image_gc_loop import GateStateFile
from bayplan.images.credentials.pull_manager import ImagePullManager
from bayplan.images.image_gc import used_by_containers
from bayplan.images.runtime.objects import (
    Image,
    ImageKey,
    ImageRuntime,
    ImageSpec,
    RuntimeCallError,
)
from bayplan.kube.imagereferences import InvalidReferenceError, parse_image
from bayplan.kube.pods import Pod


@dataclass(frozen=True, slots=True)
class PodsToReset:
    """The pods to restart, those left alone (no controller), and those not affected by the gate."""

    restart: tuple[Pod, ...] = ()
    leave: tuple[Pod, ...] = ()
    unaffected: tuple[Pod, ...] = ()


def select_pods(pods: Iterable[Pod], *, without_controller: bool) -> PodsToReset:
    """Return a node's live pods by what a clean-up does with them."""
    restart: list[Pod] = []
    leave: list[Pod] = []
    unaffected: list[Pod] = []
    for pod in pods:
        if pod.is_terminal:
            continue
        if not pod.spec.runtime_class_name:
            unaffected.append(pod)
        elif pod.is_terminating:
            continue  # it is being deleted anyway
        elif pod.metadata.controller is not None or without_controller:
            restart.append(pod)
        else:
            leave.append(pod)
    return PodsToReset(tuple(restart), tuple(leave), tuple(unaffected))


def stale_images(images: Iterable[Image], pods: PodsToReset) -> set[ImageKey]:
    """Return the images to remove."""
    stays = _names(pods.unaffected)
    left_alone = _names(pods.leave)
    return {
        image.key
        for image in images
        if not image.pinned
        and left_alone.isdisjoint(image.names)
        and (image.handler or stays.isdisjoint(image.names))
    }


def _names(pods: Iterable[Pod]) -> set[str]:
    """Return the names of the pods' images, as runtimes list them."""
    names = set()
    for pod in pods:
        for container in [*pod.spec.init_containers, *pod.spec.containers]:
            try:
                names.add(str(parse_image(container.image).with_default_tag()))
            except InvalidReferenceError:
                continue
    return names


WAIT_SECONDS = 60.0
_POLL_SECONDS = 1.0


class NodePods(Protocol):
    """The pods of a node."""

    async def pods_on(self, node: str) -> list[Pod]:
        """Return the pods that are bound to a node."""
        ...

    async def delete_pod(self, pod: Pod) -> None:
        """Delete a pod; no error if it does not exist."""
        ...


@dataclass(frozen=True, slots=True)
class ResetReport:
    """What was done, or in a dry run would be, and what remains."""

    pods: PodsToReset
    removed: tuple[ImageKey, ...]
    remaining: tuple[ImageKey, ...]
    """Stale images that are in use or could not be removed."""
    failed: dict[ImageKey, str]
    records_forgotten: int = 0

    @property
    def complete(self) -> bool:
        """Whether nothing of before the switch remains."""
        return not self.remaining and not self.pods.leave


@dataclass(slots=True)
class _ImageRemoval:
    """The removals of one clean-up."""

    runtime: ImageRuntime
    stale: set[ImageKey]
    removed: set[ImageKey] = field(default_factory=set)
    failed: dict[ImageKey, str] = field(default_factory=dict)

    async def used(self) -> set[ImageKey]:
        """Return the stale images that containers still use."""
        return used_by_containers(self.stale - self.removed, await self.runtime.images_in_use())

    async def prune(self) -> None:
        """Remove the stale images that are not in use."""
        for key in sorted(self.stale - self.removed - await self.used()):
            try:
                await self.runtime.remove_image(ImageSpec(key.id, key.handler))
            except RuntimeCallError as error:
                self.failed[key] = str(error)
            else:
                self.failed.pop(key, None)
                self.removed.add(key)

    def report(self, pods: PodsToReset, forgotten: int) -> ResetReport:
        """Return the report."""
        left = self.stale - self.removed
        remaining = sorted(key for key in left if key.handler or key in self.failed)
        removed = tuple(sorted(self.removed))
        return ResetReport(pods, removed, tuple(remaining), self.failed, forgotten)


@dataclass(frozen=True, slots=True)
class ImageReset:
    """The clean-up of one node; the runtime is used with handlers, whatever the gate."""

    runtime: ImageRuntime
    pull_manager: ImagePullManager
    gate_file: GateStateFile
    clock: Clock
    workloads: NodePods | None = None
    node: str = ""
    without_controller: bool = False
    wait_seconds: float = WAIT_SECONDS

    async def run(self, *, dry_run: bool = False) -> ResetReport:
        """Run the clean-up, or only report what it would do."""
        pods = await self._pods()
        removal = _ImageRemoval(self.runtime, stale_images(await self.runtime.list_images(), pods))
        if dry_run:
            removal.removed = removal.stale - (set() if pods.restart else await removal.used())
            return removal.report(pods, 0)
        await removal.prune()
        await self._restart(pods, removal)
        report = removal.report(pods, await self._forget())
        if report.complete:
            self.gate_file.mark_cleaned_up()
        return report

    async def _pods(self) -> PodsToReset:
        if self.workloads is None:
            return PodsToReset()
        pods = await self.workloads.pods_on(self.node)
        return select_pods(pods, without_controller=self.without_controller)

    async def _restart(self, pods: PodsToReset, removal: _ImageRemoval) -> None:
        if self.workloads is None or not pods.restart:
            return
        for pod in pods.restart:
            await self.workloads.delete_pod(pod)
        deadline = self.clock.monotonic() + self.wait_seconds
        while self.clock.monotonic() < deadline and await removal.used():
            await self.clock.sleep(_POLL_SECONDS)
        await removal.prune()

    async def _forget(self) -> int:
        listed_at = self.clock.now()
        present = [image.key for image in await self.runtime.list_images()]
        return self.pull_manager.prune_unknown_records(present, listed_at)
