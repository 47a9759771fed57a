"""ImageLocality: nodes that already have the pod's images, the larger and the more common the
better.

An image's size is scaled by the share of nodes that have it, so that one node with a large image
does not draw every pod to it.
"""

from __future__ import annotations

import numpy as np

from bayplan.fit.plugins.base import MAX_SCORE, EvaluationRequest, LocalScore, ReadScope, Score
from bayplan.fit.plugins.plugin import SchedulerPlugin
from bayplan.fit.state.columns import IntArray, Rows

NAME = "ImageLocality"
MEBIBYTE = 1024 * 1024
LEAST = 23 * MEBIBYTE
MOST_PER_CONTAINER = 1000 * MEBIBYTE


class ImageLocality(LocalScore):
    """The score by the sizes of images that a node has."""

    name = NAME
    reads = ReadScope.NODE

    def __init__(self, request: EvaluationRequest) -> None:
        self._cluster = request.cluster
        self._images = request.signature.images

    def points(self, rows: Rows) -> IntArray:
        """Return points by the bytes that need not be pulled."""
        there = np.zeros(self._cluster.slots.capacity, dtype=np.int64)
        nodes = max(len(self._cluster.slots), 1)
        for image in self._images:
            holders = self._cluster.images.holders(image)
            spread = len(holders) / nodes
            for slot, size in holders.items():
                there[slot] += int(size * spread)
        most = MOST_PER_CONTAINER * max(len(self._images), 1)
        points: IntArray = MAX_SCORE * (np.clip(there, LEAST, most) - LEAST) // (most - LEAST)
        return points[rows]


def compile_score(request: EvaluationRequest) -> Score | None:
    """Compile the score."""
    return ImageLocality(request)


PLUGIN = SchedulerPlugin(
    name=NAME,
    points=("score",),
    node_fields=("status.images",),
    score=compile_score,
)
