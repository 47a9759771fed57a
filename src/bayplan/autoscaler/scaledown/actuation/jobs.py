"""Nodes that are being given back, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.autoscaler.scaledown.progress import Deletions
from bayplan.kube.nodes import Node


class StaysError(Exception):
    """A node stays after all, and why."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One node that is being given back."""

    node: Node
    group: str
    drains: bool
    """Whether pods have to be moved first; without, a pod that has come keeps the node."""
    together: bool = False
    """Whether it goes with others of its group, or not at all."""

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name


class Jobs:
    """All that are under way, by node."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def __contains__(self, node: object) -> bool:
        return node in self._jobs

    def begin(self, jobs: Iterable[Job]) -> None:
        """They are under way."""
        self._jobs.update({job.name: job for job in jobs})

    def end(self, job: Job) -> None:
        """It is over, one way or the other."""
        self._jobs.pop(job.name, None)

    def deletions(self) -> Deletions:
        """Which nodes are on their way out."""
        every = self._jobs.values()
        return Deletions(
            {job.name: job.group for job in every if not job.drains},
            {job.name: job.group for job in every if job.drains},
        )
