"""The clean-up after the gate was switched, in one go: restart pods, prune images, forget records.

    delete the pods that have a runtime class (their controllers make new ones)
      → wait until their images are out of use
        → remove every image that was there and that nobody needs, each by its handler
          → forget the pull records, and settle the debt

Pods without a controller would not come back, so they are left alone unless told otherwise; what
they use stays, is reported, and keeps the debt open. Pinned images stay, they are nobody's pull.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from bayplan.images.agent.rollback import GateLedger
from bayplan.images.collection.records import used_by_containers
from bayplan.images.credentials.memory import PullMemory
from bayplan.images.runtime.errors import RuntimeCallError
from bayplan.images.runtime.objects import ImageKey, ImageRuntime, ImageSpec
from bayplan.kube.clock import Clock
from bayplan.kube.pods import Pod

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
class PodChoice:
    """Which pods are restarted, and which are left alone because they would not come back."""

    restart: tuple[Pod, ...] = ()
    leave: tuple[Pod, ...] = ()


@dataclass(frozen=True, slots=True)
class ResetReport:
    """What was done, or in a dry run would be, and what is left to do."""

    pods: PodChoice
    removed: tuple[ImageKey, ...]
    remaining: tuple[ImageKey, ...]
    failed: dict[ImageKey, str]
    records_forgotten: int = 0

    @property
    def complete(self) -> bool:
        """Whether nothing of before the switch is left."""
        return not self.remaining


def choose_pods(pods: Iterable[Pod], *, without_controller: bool) -> PodChoice:
    """The pods whose images depend on the gate: those with a runtime class."""
    restart: list[Pod] = []
    leave: list[Pod] = []
    for pod in pods:
        if pod.spec.runtime_class_name is None or pod.is_terminal or pod.is_terminating:
            continue
        returns = pod.metadata.controller is not None or without_controller
        (restart if returns else leave).append(pod)
    return PodChoice(tuple(restart), tuple(leave))


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
        doomed = {image.key for image in await self.runtime.list_images() if not image.pinned}
        if dry_run:
            return await self._preview(pods, doomed)
        await self._restart(pods)
        await self._wait_until_unused(doomed if pods.restart else set())
        removed, failed = await self._prune(doomed)
        remaining = tuple(sorted(doomed - removed))
        forgotten = self.memory.clear()
        if not remaining:
            self.ledger.settle()
        return ResetReport(pods, tuple(sorted(removed)), remaining, failed, forgotten)

    async def _pods(self) -> PodChoice:
        if self.workloads is None:
            return PodChoice()
        pods = await self.workloads.pods_on(self.node)
        return choose_pods(pods, without_controller=self.without_controller)

    async def _preview(self, pods: PodChoice, doomed: set[ImageKey]) -> ResetReport:
        in_use = set() if pods.restart else await self.runtime.images_in_use()
        used = used_by_containers(doomed, in_use)
        return ResetReport(pods, tuple(sorted(doomed - used)), tuple(sorted(used)), {})

    async def _restart(self, pods: PodChoice) -> None:
        if self.workloads is None:
            return
        for pod in pods.restart:
            await self.workloads.delete_pod(pod)

    async def _wait_until_unused(self, keys: set[ImageKey]) -> None:
        """Containers take their time to end; what is still in use afterwards is reported."""
        give_up_at = self.clock.monotonic() + self.patience
        while self.clock.monotonic() < give_up_at:
            in_use = await self.runtime.images_in_use()
            if not used_by_containers(keys, in_use):
                return
            await self.clock.sleep(_LOOK_EVERY)

    async def _prune(self, doomed: set[ImageKey]) -> tuple[set[ImageKey], dict[ImageKey, str]]:
        in_use = await self.runtime.images_in_use()
        removed: set[ImageKey] = set()
        failed: dict[ImageKey, str] = {}
        for key in sorted(doomed - used_by_containers(doomed, in_use)):
            try:
                await self.runtime.remove_image(ImageSpec(key.id, key.handler))
            except RuntimeCallError as error:
                failed[key] = str(error)
            else:
                removed.add(key)
        return removed, failed
