"""Claims that wait for their first consumer, bound exactly as decided.

A decision has, for each claim, the volume that it takes or that one is to be provisioned for the
node. The first is written into the volume (`claimRef`), the second into the claim (the selected
node); others complete the binding. The pod is bound only when all its claims are. What fails, or
takes too long, is taken back, so that the pod's next try is free to go elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bayplan.base.clock import Clock
from bayplan.client.errors import ClientError
from bayplan.fit import ClaimBinding
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.nodes import Node
from bayplan.kube.selectors import compile_node_selector
from bayplan.kube.storage import (
    BIND_COMPLETED,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from bayplan.scheduler.wakeup import wait_for_event
from bayplan.scheduler.writes import Writes

log = logging.getLogger(__name__)


class VolumesFailedError(Exception):
    """The volumes of a pod cannot be had where it was to go."""


class Observed:
    """Claims, volumes and nodes as observed; nothing assumed is in it."""

    def __init__(
        self,
        claims: Callable[[str], PersistentVolumeClaim | None],
        volumes: Callable[[str], PersistentVolume | None],
        nodes: Callable[[str], Node | None],
    ) -> None:
        self.claim, self.volume, self.node = claims, volumes, nodes


@dataclass(slots=True)
class _Promise:
    """A claim whose binding is in progress."""

    claim: PersistentVolumeClaim
    volume: str
    """The volume that it takes; empty if one is provisioned."""
    version: str = ""
    """Of the volume or the claim, since we wrote it; empty before."""
    begun: bool = False
    """Whether the write was sent: unanswered it may have been carried out."""


class VolumeBinder:
    """Binds claims as decided, and waits until they are."""

    def __init__(self, writes: Writes, observed: Observed, clock: Clock) -> None:
        self._writes = writes
        self._observed = observed
        self._clock = clock
        self._waiting: dict[str, dict[asyncio.Event, None]] = {}

    def on_event(self, event: ClusterEvent) -> None:
        """Handle a change of claims and volumes: bindings that wait for them look again."""
        if not self._waiting:
            return
        for one in (event.before, event.after):
            keys = []
            if isinstance(one, PersistentVolumeClaim):
                keys = [one.key]
            elif isinstance(one, PersistentVolume) and one.spec.claim_ref is not None:
                keys = [f"{one.spec.claim_ref.namespace}/{one.spec.claim_ref.name}"]
            for key in keys:
                for waiting in self._waiting.get(key, ()):
                    waiting.set()

    async def bind(self, bindings: Sequence[ClaimBinding], node: str, seconds: float) -> None:
        """Bind these claims for a pod on a node; VolumesFailedError if that cannot be done, or
        takes longer than that.
        """
        promises = [self._promise(binding) for binding in bindings]
        try:
            for promise in promises:
                await self._write(promise, node)
            if self._writes.is_observed:
                await self._until_bound(promises, node, seconds)
        except (VolumesFailedError, ClientError) as error:
            await self._undo(promises, node)
            raise VolumesFailedError(str(error)) from error

    def _promise(self, binding: ClaimBinding) -> _Promise:
        claim = self._observed.claim(binding.claim)
        if claim is None:
            raise VolumesFailedError(f"claim {binding.claim} is gone")
        return _Promise(claim, binding.volume)

    async def _write(self, promise: _Promise, node: str) -> None:
        promise.begun = True
        if not promise.volume:
            promise.version = await self._writes.select_node(promise.claim, node)
            return
        volume = self._observed.volume(promise.volume)
        if volume is None:
            raise VolumesFailedError(f"volume {promise.volume} is gone")
        promise.version = await self._writes.reserve(volume, promise.claim)

    async def _until_bound(self, promises: Sequence[_Promise], node: str, seconds: float) -> None:
        news = asyncio.Event()
        for promise in promises:
            self._waiting.setdefault(promise.claim.key, {})[news] = None
        deadline = self._clock.monotonic() + seconds
        try:
            while not all(self._is_bound(promise, node) for promise in promises):
                await self._wait(news, deadline)
        finally:
            for promise in promises:
                waiting = self._waiting[promise.claim.key]
                waiting.pop(news, None)
                if not waiting:
                    del self._waiting[promise.claim.key]

    async def _wait(self, news: asyncio.Event, deadline: float) -> None:
        left = deadline - self._clock.monotonic()
        if left <= 0:
            raise VolumesFailedError("timed out waiting for claims to be bound")
        await wait_for_event(self._clock, news, left)
        news.clear()

    def _is_bound(self, promise: _Promise, node: str) -> bool:
        """Whether a claim has its volume; VolumesFailedError if it will not get it here."""
        claim = self._observed.claim(promise.claim.key)
        if claim is None or claim.metadata.uid != promise.claim.metadata.uid:
            raise VolumesFailedError(f"claim {promise.claim.key} is gone")
        if not claim.spec.volume_name:
            self._check_under_way(promise, claim, node)
            return False
        if promise.volume and claim.spec.volume_name != promise.volume:
            raise VolumesFailedError(
                f"claim {claim.key} took volume {claim.spec.volume_name}, not {promise.volume}"
            )
        volume = self._observed.volume(claim.spec.volume_name)
        if volume is None or BIND_COMPLETED not in claim.metadata.annotations:
            return False
        self._check_reachable(volume, node)
        return True

    def _check_under_way(self, promise: _Promise, claim: PersistentVolumeClaim, node: str) -> None:
        if promise.volume:
            volume = self._observed.volume(promise.volume)
            if volume is None:
                raise VolumesFailedError(f"volume {promise.volume} is gone")
            reference = volume.spec.claim_ref
            taken = reference is None or reference.uid != claim.metadata.uid
            if taken and _at_least(volume.metadata.resource_version, promise.version):
                raise VolumesFailedError(f"volume {promise.volume} went to another claim")
        elif claim.metadata.annotations.get(SELECTED_NODE) != node and _at_least(
            claim.metadata.resource_version, promise.version
        ):
            raise VolumesFailedError(f"no volume was made for claim {claim.key} on node {node}")

    def _check_reachable(self, volume: PersistentVolume, name: str) -> None:
        node, affinity = self._observed.node(name), volume.spec.node_affinity
        if node is None:
            raise VolumesFailedError(f"node {name} is gone")
        if affinity is None or affinity.required is None:
            return
        if not compile_node_selector(affinity.required).matches(node):
            raise VolumesFailedError(f"volume {volume.name} cannot be reached from node {name}")

    async def _undo(self, promises: Sequence[_Promise], node: str) -> None:
        for promise in promises:
            if not promise.begun:
                continue
            try:
                if promise.volume:
                    await self._writes.release(promise.volume, promise.claim)
                else:
                    await self._writes.deselect_node(promise.claim, node)
            except ClientError as error:
                log.warning("the binding of claim %s stays: %s", promise.claim.key, error)


def _at_least(version: str, written: str) -> bool:
    """Whether a version is not older than what we wrote; versions count up."""
    if version.isdigit() and written.isdigit():
        return int(version) >= int(written)
    return version == written
