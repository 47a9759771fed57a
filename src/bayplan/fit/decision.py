"""What a decision is: a node, the volumes it rests on, or the plugins that refused.

A decision is a value and changes nothing. Assuming it gives a token; the token takes exactly that
back.
"""

from __future__ import annotations

import msgspec

from bayplan.fit.refusal import Refusal
from bayplan.fit.volumes.binding import ClaimBinding


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Where a pod would go: a node, or nowhere."""

    node: str | None
    bindings: tuple[ClaimBinding, ...] = ()
    """What its claims that wait for their first consumer get there."""
    refused_before: Refusal | None = None
    """Why no node was even looked at, if none was."""
    plugins: frozenset[str] = frozenset()
    """The plugins that refused, if it goes nowhere."""


class Assumption(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The token of one assumed decision; each is equal to itself alone."""

    pod_key: str
    uid: str
    decision: Decision
