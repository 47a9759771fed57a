"""The writer of limits into a node's status and its CSINode, with back-off."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field
from random import Random

from bayplan.base.flowcontrol import ExponentialBackoff
from bayplan.client import Client, merge, strategic
from bayplan.client.errors import ApiError, ClientError, ConflictError, NotFoundError
from bayplan.client.events import EventRecorder
from bayplan.kube.attachlimits import invalid_attach_limits, parse_attach_limit, published_rules
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSINode
from bayplan.node.decision import (
    AttachLimitSettings,
    DesiredLimits,
    Json,
    csinode_change,
    desired_limits,
    node_change,
)
from bayplan.node.metrics import LimitMetrics

FIRST_WAIT = 1.0
LONGEST_WAIT = 300.0
"""The longest back-off of a patch that fails, or that another client reverts, in seconds."""
UNCONTESTED_SECONDS = 2 * LONGEST_WAIT
"""Seconds without another write after which a node no longer counts as contested."""


@dataclass(slots=True)
class LimitWriteState:
    """The state of writes to one node."""

    uid: str
    failure: ExponentialBackoff
    contention: ExponentialBackoff
    due: float = 0.0
    """The earliest time of the next attempt, in the clock's seconds."""
    tried: DesiredLimits = field(default_factory=DesiredLimits)
    """The desired limits of the last attempt."""
    published: DesiredLimits = field(default_factory=DesiredLimits)
    """The limits last written."""
    written: float = float("-inf")
    """The time of the last write."""
    unreadable: int = 0
    """The number of the node's keys that are not a valid limit."""
    reported: tuple[str, ...] = ()
    """The warnings already given, so that they are not repeated."""

    @classmethod
    def new(cls, rng: Random, uid: str) -> LimitWriteState:
        """Return the state of a new node."""
        waits = (
            ExponentialBackoff(rng, FIRST_WAIT, LONGEST_WAIT),
            ExponentialBackoff(rng, FIRST_WAIT, LONGEST_WAIT),
        )
        return cls(uid, *waits)

    @property
    def is_waiting(self) -> bool:
        """Whether the last write failed."""
        return self.failure.failures > 0

    def is_contested(self, now: float) -> bool:
        """Whether another client keeps changing what we have written."""
        return self.contention.failures > 1 and now - self.written < UNCONTESTED_SECONDS

    def record_failure(self, now: float) -> float:
        """Record a failed write; return the seconds until the next attempt."""
        wait = self.failure.next_wait()
        self.due = now + wait
        return wait

    def record_written(self, now: float, published: DesiredLimits) -> None:
        """Record a write. If the same was written shortly before, another client reverts it: then
        the next write has to wait.
        """
        is_repeated = published == self.published and now - self.written < UNCONTESTED_SECONDS
        self.failure.reset()
        if is_repeated:
            self.due = now + self.contention.next_wait()
        else:
            self.contention.reset()
            self.due = 0.0
        self.published, self.written = published, now

    def record_unchanged(self) -> None:
        """Record that there was nothing to write."""
        self.failure.reset()
        self.due = 0.0


log = logging.getLogger(__name__)
_ACTION = "PublishAttachLimits"


class LimitWriter:
    """Writes the desired limits to nodes and CSINodes."""

    def __init__(self, client: Client, metrics: LimitMetrics, recorder: EventRecorder) -> None:
        self.client = client
        self._metrics = metrics
        self._recorder = recorder

    async def apply(
        self,
        node: Node,
        csinode: CSINode | None,
        settings: AttachLimitSettings,
        state: LimitWriteState,
    ) -> bool:
        """Write the difference to the desired limits; False if that failed."""
        want = state.tried = desired_limits(node, csinode, settings)
        self._warn(node, want, state)
        change = node_change(node, want.keys)
        other = None if csinode is None else csinode_change(csinode, want.drivers)
        if change is None and other is None:
            state.record_unchanged()
            state.published = want
            return True
        done = await self._change_node(node, want, change) if change is not None else True
        if other is not None and csinode is not None:
            done = await self._change_csinode(csinode, other) and done
        now = self.client.clock.monotonic()
        if done:
            state.record_written(now, want)
        else:
            wait = state.record_failure(now)
            log.info("node %s: retrying in %.0f seconds", node.name, wait)
        return done

    async def _change_node(self, node: Node, want: DesiredLimits, change: Json) -> bool:
        writing = self.client.patch(Node, node.name, change=merge(change), subresource="status")
        if not await self._written("Node", node.name, writing):
            return False
        for text in _change_texts(node, want):
            log.info("node %s: %s", node.name, text)
            self._recorder.record(node, "Normal", "AttachLimitPublished", action=_ACTION, note=text)
        return True

    async def _change_csinode(self, csinode: CSINode, change: Json) -> bool:
        writing = self.client.patch(CSINode, csinode.name, change=strategic(change))
        return await self._written("CSINode", csinode.name, writing)

    async def _written(self, kind: str, name: str, writing: Awaitable[object]) -> bool:
        try:
            await writing
        except (ConflictError, NotFoundError) as error:
            # The informer will report the object's new state.
            self._failed(kind, error.reason)
            log.info("%s %s has changed meanwhile: %s", kind, name, error)
            return False
        except ClientError as error:
            self._failed(kind, error.reason if isinstance(error, ApiError) else "Transport")
            log.warning("cannot patch %s %s: %s", kind, name, error)
            return False
        self._metrics.writes.labels(kind).inc()
        return True

    def _failed(self, kind: str, reason: str) -> None:
        self._metrics.errors.labels(kind, reason or "Unknown").inc()

    def _warn(self, node: Node, want: DesiredLimits, state: LimitWriteState) -> None:
        """Warn once about an unknown instance type and about invalid limits of a node."""
        warnings = [
            ("UnknownInstanceType", f"{one.rule}; {one.count} is a guess until it is configured")
            for one in want.guesses
        ]
        wrong = invalid_attach_limits(node.status.allocatable)
        state.unreadable = len(wrong)
        warnings += [
            ("UnreadableAttachLimit", f"{key}: {amount!r} is not a valid limit, and is ignored")
            for key, amount in wrong.items()
            if key not in want.keys
        ]
        for reason, text in warnings:
            if text not in state.reported:
                log.warning("node %s: %s", node.name, text)
                self._recorder.record(node, "Warning", reason, action=_ACTION, note=text)
        state.reported = tuple(text for _, text in warnings)


def _change_texts(node: Node, want: DesiredLimits) -> list[str]:
    """Return a text for each changed key of the node's status."""
    present, ours = node.status.allocatable, published_rules(node.metadata.annotations)
    texts = [
        f"{key} is {one.count} ({one.rule})"
        + (f"; it was {present[key]}" if key in present else "")
        for key, one in want.keys.items()
        if key not in present or parse_attach_limit(present[key]) != one.count
    ]
    return texts + [f"{key} was removed" for key in sorted(ours.keys() - want.keys.keys())]
