"""How much a snapshot may keep of what it could work out again.

Everything here is a matter of speed and memory, never of answers; tests hand in small ones to show
that.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """The most of each thing that is kept."""

    signatures: int = 100_000
    """Signatures of pods, and what is known of each."""
    evaluation_bytes: int = 256 * 1024 * 1024
    """What evaluations may take; the least recently asked are dropped first."""
    changes: int = 1 << 16
    """Changed slots that are remembered one by one."""
    counters: int = 5000
    """Standing counts of pods by domain or by node."""
    idle_terms: int = 1000
    """As long as there are no more terms than this, those that no pod has any more do no harm."""
    node_sets: int = 10_000
    """Sets of nodes by a condition."""
    requirements: int = 100_000
    """Distinct needs of storage."""
    claims: int = 500_000
    """Claims whose facts are known."""
    storage_classes: int = 1000
    """Classes whose open volumes are known by node."""
