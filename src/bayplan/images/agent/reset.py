"""The clean-up after the gate was switched, in one go: prune images, restart pods, prune again.

Only pods with a runtime class got other images because of the gate; those that no controller would
bring back are left alone unless told otherwise. Every image goes that is neither pinned nor needed
by a pod that stays: a pod without a runtime class needs the default handler's images, which are the
right ones whatever the gate.

    remove the stale images that nobody uses, each by its handler
      → delete the pods that have a runtime class (their controllers make new ones)
        → wait until their images are out of use, and remove those as well
          → forget the records of pulls whose image is gone, and settle the debt

What is stale, and which pods are restarted, is decided first, by pure functions. A
handler's image that stays (in use, or its removal failed) and a pod that is left alone keep the
debt open; an image of the default handler that is in use does not, it is the right one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from bayplan.base.clock import Clock
from bayplan.images.agent.housekeeping import GateLedger
from bayplan.images.collection import used_by_containers
from bayplan.images.credentials.memory import PullMemory
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
class PodChoice:
    """Which pods are restarted, which would not come back, and which the gate does not concern."""

    restart: tuple[Pod, ...] = ()
    leave: tuple[Pod, ...] = ()
    unconcerned: tuple[Pod, ...] = ()


def choose_pods(pods: Iterable[Pod], *, without_controller: bool) -> PodChoice:
    """Sort a node's living pods by what a clean-up does with them."""
    restart: list[Pod] = []
    leave: list[Pod] = []
    unconcerned: list[Pod] = []
    for pod in pods:
        if pod.is_terminal:
            continue
        if not pod.spec.runtime_class_name:
            unconcerned.append(pod)
        elif pod.is_terminating:
            continue  # it goes by itself
        elif pod.metadata.controller is not None or without_controller:
            restart.append(pod)
        else:
            leave.append(pod)
    return PodChoice(tuple(restart), tuple(leave), tuple(unconcerned))


def stale_images(images: Iterable[Image], pods: PodChoice) -> set[ImageKey]:
    """The images that have to go."""
    stays = _names(pods.unconcerned)
    left_alone = _names(pods.leave)
    return {
        image.key
        for image in images
        if not image.pinned
        and left_alone.isdisjoint(image.names)
        and (image.handler or stays.isdisjoint(image.names))
    }


def _names(pods: Iterable[Pod]) -> set[str]:
    """The names of the pods' images, as runtimes list them."""
    names = set()
    for pod in pods:
        for container in [*pod.spec.init_containers, *pod.spec.containers]:
            try:
                names.add(str(parse_image(container.image).with_default_tag()))
            except InvalidReferenceError:
                continue
    return names


PATIENCE = 60.0
_LOOK_EVERY = 1.0


class Workloads(Protocol):
    """The pods of a node."""

    async def pods_on(self, node: str) -> list[Pod]:
        """The pods that are bound to a node."""
        ...

    async def delete_pod(self, pod: Pod) -> None:
        """Have a pod deleted; no error if it is gone."""
        ...


@dataclass(frozen=True, slots=True)
class ResetReport:
    """What was done, or in a dry run would be, and what is left to do."""

    pods: PodChoice
    removed: tuple[ImageKey, ...]
    remaining: tuple[ImageKey, ...]
    """What should have gone, but is in use or could not be removed."""
    failed: dict[ImageKey, str]
    records_forgotten: int = 0

    @property
    def complete(self) -> bool:
        """Whether nothing of before the switch is left."""
        return not self.remaining and not self.pods.leave


@dataclass(slots=True)
class _Pruning:
    """The removals of one clean-up."""

    runtime: ImageRuntime
    stale: set[ImageKey]
    removed: set[ImageKey] = field(default_factory=set)
    failed: dict[ImageKey, str] = field(default_factory=dict)

    async def used(self) -> set[ImageKey]:
        """What of the stale images containers still use."""
        return used_by_containers(self.stale - self.removed, await self.runtime.images_in_use())

    async def prune(self) -> None:
        """Remove what is left of the stale images and is not in use."""
        for key in sorted(self.stale - self.removed - await self.used()):
            try:
                await self.runtime.remove_image(ImageSpec(key.id, key.handler))
            except RuntimeCallError as error:
                self.failed[key] = str(error)
            else:
                self.failed.pop(key, None)
                self.removed.add(key)

    def report(self, pods: PodChoice, forgotten: int) -> ResetReport:
        """What came of it."""
        left = self.stale - self.removed
        remaining = sorted(key for key in left if key.handler or key in self.failed)
        removed = tuple(sorted(self.removed))
        return ResetReport(pods, removed, tuple(remaining), self.failed, forgotten)


@dataclass(frozen=True, slots=True)
class Reset:
    """One node's clean-up; the runtime is the one that sees handlers, whatever the gate."""

    runtime: ImageRuntime
    memory: PullMemory
    ledger: GateLedger
    clock: Clock
    workloads: Workloads | None = None
    node: str = ""
    without_controller: bool = False
    patience: float = PATIENCE

    async def run(self, *, dry_run: bool = False) -> ResetReport:
        """Do it, or only say what would be done."""
        pods = await self._pods()
        pruning = _Pruning(self.runtime, stale_images(await self.runtime.list_images(), pods))
        if dry_run:
            pruning.removed = pruning.stale - (set() if pods.restart else await pruning.used())
            return pruning.report(pods, 0)
        await pruning.prune()
        await self._restart(pods, pruning)
        report = pruning.report(pods, await self._forget())
        if report.complete:
            self.ledger.settle()
        return report

    async def _pods(self) -> PodChoice:
        if self.workloads is None:
            return PodChoice()
        pods = await self.workloads.pods_on(self.node)
        return choose_pods(pods, without_controller=self.without_controller)

    async def _restart(self, pods: PodChoice, pruning: _Pruning) -> None:
        if self.workloads is None or not pods.restart:
            return
        for pod in pods.restart:
            await self.workloads.delete_pod(pod)
        give_up_at = self.clock.monotonic() + self.patience
        while self.clock.monotonic() < give_up_at and await pruning.used():
            await self.clock.sleep(_LOOK_EVERY)
        await pruning.prune()

    async def _forget(self) -> int:
        listed_at = self.clock.now()
        present = [image.key for image in await self.runtime.list_images()]
        return self.memory.forget_absent(present, listed_at)
