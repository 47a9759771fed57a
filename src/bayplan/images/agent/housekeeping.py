"""The rounds of a node's agent: collect images, forget old records, count, and warn of a debt.

A round comes every five minutes, or after half a minute if the last one had failures. Whatever goes
wrong in a round is reported as the kubelet reports it, and the next round comes all the same.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from bayplan.base.clock import Clock
from bayplan.images.agent.rollback import WARNING, GateLedger, UnreadableGateStateError
from bayplan.images.collection.collector import Collector, Outcome
from bayplan.images.collection.filesystem import InvalidDiskCapacityError
from bayplan.images.credentials.memory import PullMemory
from bayplan.images.manager.cluster import EventKind, EventReason, EventSink, Subject
from bayplan.images.manager.metrics import ImageMetrics
from bayplan.images.runtime.errors import RuntimeCallError

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
