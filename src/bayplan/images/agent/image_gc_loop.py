"""The image GC loop of a node's agent: collect images, prune records, count, warn of a clean-up.

Images that were pulled before the feature gate was switched may be the wrong ones: with it off, the
handler of a pull is unknown; with it on again, images of a runtime class are listed under the
default handler. So after a switch on a node that has images a clean-up is needed, with a warning
until `bayplan images reset` has run. The gate's last state is kept on disk.

The loop runs every five minutes, or after half a minute if the last run had failures. Errors are
reported as the kubelet reports them, and the loop goes on.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bayplan.base.clock import Clock
from bayplan.images.credentials.pull_manager import ImagePullManager
from bayplan.images.image_gc import ImageGCManager, ImageGCResult, InvalidDiskCapacityError
from bayplan.images.manager.image_request import (
    ImageEventReason,
    ImageEventSink,
    ImageEventType,
    InvolvedObject,
)
from bayplan.images.manager.metrics import ImageMetrics
from bayplan.images.runtime.objects import Image, RuntimeCallError

CLEAN_UP_WARNING = (
    "RuntimeClassInImageCriApi was switched while images were on this node, some may be of the "
    "wrong runtime class: run `bayplan images reset`"
)


class GateState(msgspec.Struct, frozen=True, rename="camel"):
    """The gate at the last start, and whether a clean-up is needed."""

    enabled: bool
    clean_up_owed: bool = False


class UnreadableGateStateError(Exception):
    """The file with the gate's last state cannot be read."""


def next_state(last: GateState | None, images: Iterable[Image], *, enabled: bool) -> GateState:
    """Return the state after a start: a switch with images on the node needs a clean-up."""
    images = [image for image in images if not image.pinned]
    if last is None:
        # The state before is unknown; a handler's image while the gate is off shows a switch.
        return GateState(enabled, not enabled and any(image.handler for image in images))
    switched = last.enabled != enabled
    return GateState(enabled, last.clean_up_owed or (switched and bool(images)))


@dataclass(frozen=True, slots=True)
class GateStateFile:
    """The file with the gate's state."""

    path: Path

    @classmethod
    def in_state_dir(cls, state_dir: Path) -> GateStateFile:
        """Return the file at its usual path."""
        return cls(state_dir / "image_manager" / "gate.json")

    def read(self) -> GateState | None:
        """Return the last state; None if there is none."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=GateState)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnreadableGateStateError(f"{self.path}: {error}") from error

    def record_start(self, images: Iterable[Image], *, enabled: bool) -> GateState:
        """Record a start with that gate; return the new state."""
        state = next_state(self.read(), images, enabled=enabled)
        self._write(state)
        return state

    def mark_cleaned_up(self) -> None:
        """Record that the clean-up is done."""
        state = self.read()
        if state is not None:
            self._write(GateState(state.enabled))

    @property
    def needs_clean_up(self) -> bool:
        """Whether a clean-up is needed."""
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
class ImageGCLoop:
    """Collects a node's images periodically, and reports the results."""

    gc_manager: ImageGCManager
    pull_manager: ImagePullManager
    gate_file: GateStateFile
    events: ImageEventSink
    metrics: ImageMetrics
    clock: Clock
    node: InvolvedObject

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            is_ok = await self.round()
            await self.clock.sleep(PERIOD if is_ok else PERIOD_AFTER_FAILURE)

    async def round(self) -> bool:
        """Collect once; return whether there was no failure."""
        try:
            await self._warn_of_clean_up()
            return await self._collect()
        except _REPORTED as error:
            await self._report_error(error)
            return False

    async def _collect(self) -> bool:
        listed_at = self.clock.now()
        outcome = await self.gc_manager.collect()
        self._count(outcome)
        self.pull_manager.prune_unknown_records((record.key for record in outcome.kept), listed_at)
        self.metrics.records(*self.pull_manager.counts())
        await self._report_shortage(outcome)
        return not outcome.failed

    def _count(self, outcome: ImageGCResult) -> None:
        for candidate in outcome.removed:
            log.info(
                "removed image",
                extra={"image": str(candidate.record.key), "reason": candidate.reason},
            )
            self.metrics.collected(candidate.reason)
        kept = {record.key for record in outcome.kept}
        left = [image for image in self.gc_manager.images if image.key in kept]
        self.metrics.images(left)

    async def _warn_of_clean_up(self) -> None:
        needs_clean_up = self.gate_file.needs_clean_up
        self.metrics.clean_up_owed(needs_clean_up)
        if needs_clean_up:
            log.warning(CLEAN_UP_WARNING)
            await self._publish(ImageEventReason.CLEAN_UP_OWED, CLEAN_UP_WARNING)

    async def _report_error(self, error: Exception) -> None:
        log.warning("image garbage collection failed: %s", error)
        reason = (
            ImageEventReason.INVALID_DISK_CAPACITY
            if isinstance(error, InvalidDiskCapacityError)
            else ImageEventReason.IMAGE_GC_FAILED
        )
        await self._publish(reason, str(error))

    async def _report_shortage(self, outcome: ImageGCResult) -> None:
        if not outcome.is_short_of_space or outcome.disk is None:
            return
        message = (
            f"the image filesystem is {outcome.disk.used_percent}% full: "
            f"{outcome.bytes_wanted} bytes should be freed, removing unused images freed "
            f"{outcome.bytes_freed}; the rest is images in use, or other files"
        )
        log.warning(message)
        await self._publish(ImageEventReason.FREE_DISK_SPACE_FAILED, message)

    async def _publish(self, reason: ImageEventReason, message: str) -> None:
        await self.events.publish(self.node, ImageEventType.WARNING, reason, message)
