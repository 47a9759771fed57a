"""The quota of a queue: capability, guarantee, deserved and real capability.

- *capability*: the limit that is written for a queue; what it does not name, its parent's names.
- *guarantee*: what is kept for a queue, whether it uses it or not.
- *deserved*: what a queue should have when others want the same; what it has above that, others may
  take back.
- *real capability*: what it can really have: its capability, and no more than its parent's real
  capability without what is kept for its siblings.

Above the queues stands the total. Volcano takes the existing nodes; ours is unlimited unless one is
handed in, so that quota decides what may run, and nodes are added for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf

from bayplan.kube.resources import CPU, MEMORY
from bayplan.kube.volcano import Queue
from bayplan.queues.resources import NOTHING, UNLIMITED, Resources, read_amounts

_ALWAYS = (CPU, MEMORY)
"""The resources of every node; a limit of 0 of one of them is no limit."""


@dataclass(frozen=True, slots=True)
class Quota:
    """The four amounts of a queue."""

    capability: Resources = UNLIMITED
    deserved: Resources = NOTHING
    guarantee: Resources = NOTHING
    real_capability: Resources = UNLIMITED


def written_quota(queue: Queue) -> Quota:
    """Read the quota of a queue's spec; AmountError if an amount cannot be read."""
    return Quota(
        capability=_limit(read_amounts(queue.spec.capability)),
        deserved=read_amounts(queue.spec.deserved),
        guarantee=read_amounts(queue.spec.guarantee.resource),
    )


def total_of(amounts: Iterable[Resources]) -> Resources:
    """Return the sum of amounts."""
    return sum(amounts, NOTHING)


def flat_quota(written: Quota, total: Resources, guarantees: Resources) -> Quota:
    """Return the quota of a queue without a tree; `guarantees` is the sum over all queues."""
    real = _left(total, guarantees, written)
    deserved = _cut(written.deserved, real).most(written.guarantee)
    return replace(written, deserved=deserved, real_capability=real)


def root_quota(written: Quota, total: Resources, children: Iterable[Quota]) -> Quota:
    """Return the quota of the root: unlimited in every known resource, except its own spec."""
    rest = inf if total.rest else 0
    known = Resources(dict.fromkeys((*_ALWAYS, *total), inf), rest)
    limit = known.least(written.capability)
    kept = list(children)
    return Quota(
        capability=limit,
        deserved=total_of(one.deserved.most(one.guarantee) for one in kept),
        guarantee=total_of(one.guarantee for one in kept),
        real_capability=limit,
    )


def child_quota(written: Quota, parent: Quota, guarantees: Resources) -> Quota:
    """Return the quota of a child; `guarantees` is the sum over it and its siblings."""
    inherited = {**parent.capability.amounts, **written.capability.amounts}
    capability = Resources(inherited, written.capability.rest)
    whole = replace(written, capability=capability)
    return replace(
        whole,
        deserved=written.deserved.most(written.guarantee),
        real_capability=_left(parent.real_capability, guarantees, whole),
    )


def contradictions(written: Quota) -> list[str]:
    """Return the contradictions in the spec of a queue."""
    found = [
        f"guarantee of {name} is above deserved"
        for name in written.deserved
        if written.guarantee[name] > written.deserved[name]
    ]
    for what, amounts in (("guarantee", written.guarantee), ("deserved", written.deserved)):
        over = amounts.over(written.capability, amounts)
        found += [f"{what} of {name} is above capability" for name in over]
    return found


def _left(room: Resources, guarantees: Resources, written: Quota) -> Resources:
    """Return the real capability: without others' guarantees, at most the capability."""
    return (room.beyond(guarantees) + written.guarantee).least(written.capability)


def _cut(deserved: Resources, real: Resources) -> Resources:
    """Return what is deserved, at most the limit where one is known."""
    amounts = {
        name: min(amount, real[name]) if name in real.amounts or name in _ALWAYS else amount
        for name, amount in deserved.amounts.items()
    }
    return Resources(amounts)


def _limit(amounts: Resources) -> Resources:
    """Return the limit of a capability: a missing resource, or cpu or memory of 0, is unlimited."""
    named = {n: a for n, a in amounts.amounts.items() if a > 0 or n not in _ALWAYS}
    return Resources(named, inf)
