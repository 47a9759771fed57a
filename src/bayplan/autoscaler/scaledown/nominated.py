"""Pods that are nominated for a node count as being there: others are leaving it for them."""

from __future__ import annotations

from bayplan.fit.snapshot import Snapshot


def settle_nominated(snapshot: Snapshot) -> None:
    """Count every nominated pod on its node, until the caller's fork ends."""
    by_node = snapshot.cluster.nominations.by_node
    settled = sorted((key, node) for node, records in by_node.items() for key in records)
    for key, node in settled:
        if node in snapshot.cluster.slots.by_name:
            snapshot.move(key, node)
