"""Writing limits into a node's status and its CSINode: what came of it, and when to try again."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field
from random import Random

from bayplan.base.pacing import Backoff
from bayplan.client import Client, merge, strategic
from bayplan.client.errors import ApiError, ClientError, ConflictError, NotFoundError
from bayplan.client.events import Notes
from bayplan.kube.attachlimits import limit_in, published_rules, unreadable_limits
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSINode
from bayplan.node.decision import Json, Settings, Wanted, csinode_change, node_change, wanted
from bayplan.node.metrics import LimitMetrics

FIRST_WAIT = 1.0
LONGEST_WAIT = 300.0
"""Seconds: so long a change that fails, or that somebody undoes, may wait for the next try."""
PEACE = 2 * LONGEST_WAIT
"""Seconds without having to write again, after which nobody is taken to undo it any more."""


@dataclass(slots=True)
class Page:
    """One node."""

    uid: str
    failing: Backoff
    fighting: Backoff
    due: float = 0.0
    """Not to be tried before, in the clock's seconds."""
    tried: Wanted = field(default_factory=Wanted)
    """What was last wanted of it."""
    said: Wanted = field(default_factory=Wanted)
    """What was last written."""
    written: float = float("-inf")
    """When it was."""
    unreadable: int = 0
    """Keys of the node that cannot be a limit."""
    told: tuple[str, ...] = ()
    """What has been complained of, so that it is not said again."""

    @classmethod
    def new(cls, rng: Random, uid: str) -> Page:
        """Of a node that has just come."""
        waits = (Backoff(rng, FIRST_WAIT, LONGEST_WAIT), Backoff(rng, FIRST_WAIT, LONGEST_WAIT))
        return cls(uid, *waits)

    @property
    def is_waiting(self) -> bool:
        """Whether the last change failed."""
        return self.failing.failures > 0

    def is_contested(self, now: float) -> bool:
        """Whether somebody else keeps changing what we have written."""
        return self.fighting.failures > 1 and now - self.written < PEACE

    def failed(self, now: float) -> float:
        """It could not be written; the seconds until the next try."""
        wait = self.failing.next_wait()
        self.due = now + wait
        return wait

    def wrote(self, now: float, said: Wanted) -> None:
        """It was written. If it was written just before, next time takes longer: somebody else is
        at the same keys.
        """
        again = said == self.said and now - self.written < PEACE
        self.failing.reset()
        if again:
            self.due = now + self.fighting.next_wait()
        else:
            self.fighting.reset()
            self.due = 0.0
        self.said, self.written = said, now

    def right(self) -> None:
        """There was nothing to write."""
        self.failing.reset()
        self.due = 0.0


log = logging.getLogger(__name__)
_ACTION = "PublishAttachLimits"


class Writer:
    """Brings nodes to what they should say."""

    def __init__(self, client: Client, metrics: LimitMetrics, notes: Notes) -> None:
        self.client = client
        self._metrics = metrics
        self._notes = notes

    async def bring(
        self, node: Node, csinode: CSINode | None, settings: Settings, page: Page
    ) -> bool:
        """Write what is missing; False if that failed, and is to be tried again."""
        want = page.tried = wanted(node, csinode, settings)
        self._complain(node, want, page)
        change = node_change(node, want.keys)
        other = None if csinode is None else csinode_change(csinode, want.drivers)
        if change is None and other is None:
            page.right()
            page.said = want
            return True
        done = await self._change_node(node, want, change) if change is not None else True
        if other is not None and csinode is not None:
            done = await self._change_csinode(csinode, other) and done
        now = self.client.clock.monotonic()
        if done:
            page.wrote(now, want)
        else:
            wait = page.failed(now)
            log.info("node %s: tries again in %.0f seconds", node.name, wait)
        return done

    async def _change_node(self, node: Node, want: Wanted, change: Json) -> bool:
        writing = self.client.patch(Node, node.name, change=merge(change), subresource="status")
        if not await self._written("Node", node.name, writing):
            return False
        for text in _told(node, want):
            log.info("node %s: %s", node.name, text)
            self._notes.note(node, "Normal", "AttachLimitPublished", action=_ACTION, text=text)
        return True

    async def _change_csinode(self, csinode: CSINode, change: Json) -> bool:
        writing = self.client.patch(CSINode, csinode.name, change=strategic(change))
        return await self._written("CSINode", csinode.name, writing)

    async def _written(self, kind: str, name: str, writing: Awaitable[object]) -> bool:
        try:
            await writing
        except (ConflictError, NotFoundError) as error:
            # Whatever became of it is on its way to us.
            self._failed(kind, error.reason)
            log.info("%s %s has changed meanwhile: %s", kind, name, error)
            return False
        except ClientError as error:
            self._failed(kind, error.reason if isinstance(error, ApiError) else "Transport")
            log.warning("%s %s cannot be changed: %s", kind, name, error)
            return False
        self._metrics.writes.labels(kind).inc()
        return True

    def _failed(self, kind: str, reason: str) -> None:
        self._metrics.errors.labels(kind, reason or "Unknown").inc()

    def _complain(self, node: Node, want: Wanted, page: Page) -> None:
        """Say once what is wrong with a node: a type that nobody knows, limits that are none."""
        said = [
            ("UnknownInstanceType", f"{one.rule}; {one.count} is a guess until it is configured")
            for one in want.guesses
        ]
        wrong = unreadable_limits(node.status.allocatable)
        page.unreadable = len(wrong)
        said += [
            ("UnreadableAttachLimit", f"{key}: {amount!r} cannot be a limit, and does not count")
            for key, amount in wrong.items()
            if key not in want.keys
        ]
        for reason, text in said:
            if text not in page.told:
                log.warning("node %s: %s", node.name, text)
                self._notes.note(node, "Warning", reason, action=_ACTION, text=text)
        page.told = tuple(text for _, text in said)


def _told(node: Node, want: Wanted) -> list[str]:
    """What changes for whoever looks at the node."""
    there, ours = node.status.allocatable, published_rules(node.metadata.annotations)
    texts = [
        f"{key} is {one.count} ({one.rule})" + (f"; it was {there[key]}" if key in there else "")
        for key, one in want.keys.items()
        if key not in there or limit_in(there[key]) != one.count
    ]
    return texts + [f"{key} is no more" for key in sorted(ours.keys() - want.keys.keys())]
