"""The rounds of a node's agent: collect images, forget old records, count, and warn of a debt.

Images that were pulled while the gate was the other way may be the wrong ones: with it off, nobody
knows for which handler an image was pulled; with it on again, images that were pulled for a runtime
class sit under the default handler. So a switch on a node that holds images leaves a debt, which
stays (with a warning) until `bayplan images reset` has paid it. The gate's last state is on disk.

A round comes every five minutes, or after half a minute if the last one had failures. Whatever goes
wrong in a round is reported as the kubelet reports it, and the next round comes all the same.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bayplan.base.clock import Clock
from bayplan.images.collection import Collector, InvalidDiskCapacityError, Outcome
from bayplan.images.credentials.memory import PullMemory
from bayplan.images.manager.metrics import ImageMetrics
from bayplan.images.manager.wanted import EventKind, EventReason, EventSink, Subject
from bayplan.images.runtime.objects import Image, RuntimeCallError

WARNING = (
    "RuntimeClassInImageCriApi was switched while images were on this node, some may be of the "
    "wrong runtime class: run `bayplan images reset`"
)


class GateState(msgspec.Struct, frozen=True, rename="camel"):
    """How the gate was at the last start, and whether a clean-up is due."""

    enabled: bool
    clean_up_owed: bool = False


class UnreadableGateStateError(Exception):
    """The file with the gate's last state cannot be understood."""


def next_state(last: GateState | None, images: Iterable[Image], *, enabled: bool) -> GateState:
    """The state after a start: a switch leaves a debt if there is any image that could be wrong."""
    images = [image for image in images if not image.pinned]
    if last is None:
        # Nothing is known of before; a handler's image while the gate is off tells of a switch.
        return GateState(enabled, not enabled and any(image.handler for image in images))
    switched = last.enabled != enabled
    return GateState(enabled, last.clean_up_owed or (switched and bool(images)))


@dataclass(frozen=True, slots=True)
class GateLedger:
    """The gate's state on disk."""

    path: Path

    @classmethod
    def in_state_dir(cls, state_dir: Path) -> GateLedger:
        """The ledger at its usual place."""
        return cls(state_dir / "image_manager" / "gate.json")

    def read(self) -> GateState | None:
        """The last state, or None if there was none."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=GateState)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnreadableGateStateError(f"{self.path}: {error}") from error

    def started(self, images: Iterable[Image], *, enabled: bool) -> GateState:
        """Note a start with the gate so; returns whether a clean-up is owed now."""
        state = next_state(self.read(), images, enabled=enabled)
        self._write(state)
        return state

    def settle(self) -> None:
        """The clean-up is done."""
        state = self.read()
        if state is not None:
            self._write(GateState(state.enabled))

    @property
    def owed(self) -> bool:
        """Whether a clean-up is due."""
        state = self.read()
        return state is not None and state.clean_up_owed

    def _write(self, state: GateState) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(".tmp")
        with unfinished.open("wb") as file:
            file.write(msgspec.json.encode(state))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.path)


log = logging.getLogger(__name__)

PERIOD = 300.0
PERIOD_AFTER_FAILURE = 30.0
_REPORTED = (RuntimeCallError, InvalidDiskCapacityError, UnreadableGateStateError, OSError)


@dataclass(frozen=True, slots=True)
class Housekeeping:
    """Collection with everything around it."""

    collector: Collector
    memory: PullMemory
    ledger: GateLedger
    events: EventSink
    metrics: ImageMetrics
    clock: Clock
    node: Subject

    async def run(self) -> None:
        """Rounds without end."""
        while True:
            clean = await self.round()
            await self.clock.sleep(PERIOD if clean else PERIOD_AFTER_FAILURE)

    async def round(self) -> bool:
        """One round; returns whether all went well."""
        try:
            await self._warn_of_debt()
            return await self._collect()
        except _REPORTED as error:
            await self._tell_of_error(error)
            return False

    async def _collect(self) -> bool:
        listed_at = self.clock.now()
        outcome = await self.collector.collect()
        self._count(outcome)
        self.memory.forget_absent((record.key for record in outcome.kept), listed_at)
        self.metrics.records(*self.memory.counts())
        await self._tell_of_shortage(outcome)
        return not outcome.failed

    def _count(self, outcome: Outcome) -> None:
        for candidate in outcome.removed:
            log.info("collected %s (%s)", candidate.record.key, candidate.reason)
            self.metrics.collected(candidate.reason)
        kept = {record.key for record in outcome.kept}
        left = [image for image in self.collector.images if image.key in kept]
        self.metrics.images(left)

    async def _warn_of_debt(self) -> None:
        owed = self.ledger.owed
        self.metrics.clean_up_owed(owed)
        if owed:
            log.warning(WARNING)
            await self._tell(EventReason.CLEAN_UP_OWED, WARNING)

    async def _tell_of_error(self, error: Exception) -> None:
        log.warning("image garbage collection failed: %s", error)
        reason = (
            EventReason.INVALID_DISK_CAPACITY
            if isinstance(error, InvalidDiskCapacityError)
            else EventReason.IMAGE_GC_FAILED
        )
        await self._tell(reason, str(error))

    async def _tell_of_shortage(self, outcome: Outcome) -> None:
        if not outcome.fell_short or outcome.disk is None:
            return
        message = (
            f"the disk that holds the images is {outcome.disk.used_percent}% full; "
            f"{outcome.bytes_wanted} bytes should go, collecting images freed "
            f"{outcome.bytes_freed}: the rest is images in use, or no images at all"
        )
        log.warning(message)
        await self._tell(EventReason.FREE_DISK_SPACE_FAILED, message)

    async def _tell(self, reason: EventReason, message: str) -> None:
        await self.events.publish(self.node, EventKind.WARNING, reason, message)
