"""How much of a node its pods have asked for: the larger share of cpu and memory, or of its GPUs.

A node with GPUs is judged by them alone. Pods that should long be gone do not count; daemons and
static pods can be left out, and are then taken off what the node has. The arithmetic is Cluster
Autoscaler's, so a share can be infinite or no number at all where nothing is left of a node.

Places for volumes are told beside it, by driver, and are no part of the share that is held against
the threshold: a node with little on it but volumes is still worth emptying where its volumes have
other places, and whether they have is asked of every destination. They decide who goes first: of
nodes that could go, the one that is used least in every respect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bayplan.autoscaler.scaledown.drain.pods import is_daemon, is_long_terminating, is_mirror
from bayplan.autoscaler.scaledown.gpus import gpu_resource
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.nodes import Node
from bayplan.kube.quantity import milli_value
from bayplan.kube.requests import Millis, pod_requests_milli
from bayplan.kube.resources import CPU, MEMORY

MOST_SHAPES = 1 << 14


@dataclass(frozen=True, slots=True)
class Utilization:
    """Shares by resource, and the one that counts."""

    shares: Mapping[str, float]
    resource: str
    value: float
    volumes: Mapping[str, float] = field(default_factory=dict)
    """By driver, what part of the places for volumes is taken; where there is a limit."""

    @property
    def overall(self) -> float:
        """The largest share of anything, volumes included; what is no number counts as none."""
        every = (self.value, *self.volumes.values())
        return max(0.0 if math.isnan(one) else one for one in every)


@dataclass(frozen=True, slots=True)
class Counting:
    """How pods are counted."""

    now: datetime
    ignore_daemon_sets: bool = False
    ignore_mirror_pods: bool = False
    gpu_label: str = ""
    """The label of nodes that have a GPU, ready or not."""

    @property
    def leaves_out(self) -> bool:
        """Whether some pods are left out."""
        return self.ignore_daemon_sets or self.ignore_mirror_pods


class Requests:
    """What pods ask for in thousandths, worked out once a shape."""

    def __init__(self) -> None:
        self._known: dict[PodSignature, Millis] = {}

    def of(self, record: PodRecord) -> Millis:
        """A pod's requests; pods of one shape were written alike."""
        known = self._known.get(record.shape)
        if known is None:
            if len(self._known) >= MOST_SHAPES:
                self._known.clear()
            known = self._known[record.shape] = pod_requests_milli(record.pod)
        return known


def utilization(
    node: Node, records: Iterable[PodRecord], counting: Counting, requests: Requests
) -> Utilization | None:
    """How much of a node is asked for; None if it does not say what it has."""
    gpu = gpu_resource(node, counting.gpu_label)
    names = (CPU, MEMORY) if gpu is None else (gpu,)
    has = [milli_value(node.status.allocatable.get(name, 0)) for name in names]
    if not all(has):
        return None if gpu is None else Utilization({gpu: 0.0}, gpu, 0.0)
    asked, leaves_out = [0] * len(names), counting.leaves_out
    for record in records:
        amounts, totals, sign = requests.of(record), asked, 1
        if leaves_out or record.terminating:
            totals, sign = _counted(record, counting, asked, has)
        for at, name in enumerate(names):
            totals[at] += sign * amounts.get(name, 0)
    shares = dict(zip(names, map(_divided, asked, has), strict=True))
    resource = names[0] if gpu is not None or shares[CPU] > shares[MEMORY] else MEMORY
    return Utilization(shares, resource, shares[resource])


def _counted(
    record: PodRecord, counting: Counting, asked: list[int], has: list[int]
) -> tuple[list[int], int]:
    """What a pod is counted in: what is asked for, or what is left of the node without it."""
    if _is_left_out(record, counting):
        return has, -1
    gone = record.terminating and is_long_terminating(record.pod, counting.now)
    return asked, 0 if gone else 1


def _is_left_out(record: PodRecord, counting: Counting) -> bool:
    if counting.ignore_daemon_sets and is_daemon(record.pod):
        return True
    return counting.ignore_mirror_pods and is_mirror(record.pod)


def _divided(asked: int, has: int) -> float:
    """As processors divide: by nothing gives infinity, nothing by nothing is no number."""
    if has:
        return asked / has
    return math.copysign(math.inf, asked) if asked else math.nan
