"""New nodes spread over groups that are alike, so that their sizes come close to each other.

The nodes of a purchase are given out one by one, each to the group that has the fewest, until a
group is full. What each node is for stays with it. A group takes part only if new nodes of it would
help the same pods; volumes that are tied to a zone are why it might not.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace

from bayplan.autoscaler.candidates import Candidate, Purchase
from bayplan.autoscaler.groups import GroupView
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaleup.similarity import are_alike
from bayplan.kube.pods import Pod


def balanced(
    purchase: Purchase, candidates: Sequence[Candidate], options: AutoscalerOptions
) -> list[Purchase]:
    """A purchase, as several of groups that are alike."""
    chosen = next((one for one in candidates if one.view.id == purchase.view.id), None)
    if chosen is None or purchase.view.options.zero_or_max_node_scaling:
        return [purchase]
    alike = [one.view for one in candidates if one is chosen or _stands_in(one, chosen, options)]
    if len(alike) == 1:
        return [purchase]
    shares = _shares(alike, purchase)
    views = [view for view in alike if shares[view.id]]
    placed = purchase.placed
    return [
        Purchase(view, len(shares[view.id]), tuple(shares[view.id]), placed if not n else ())
        for n, view in enumerate(views)
    ]


def _stands_in(one: Candidate, chosen: Candidate, options: AutoscalerOptions) -> bool:
    if one.view.options.zero_or_max_node_scaling:
        return False
    helped = zip(chosen.option.estimate.helped, one.option.estimate.helped, strict=True)
    same_pods = all(also > 0 for needed, also in helped if needed)
    return same_pods and are_alike(one.template, chosen.template, options)


def _shares(alike: Sequence[GroupView], purchase: Purchase) -> dict[str, list[tuple[Pod, ...]]]:
    shares: dict[str, list[tuple[Pod, ...]]] = {view.id: [] for view in alike}
    smallest = [(view.target, view.id, view.group.max_size) for view in alike if view.room]
    heapify(smallest)
    for pods in purchase.pods:
        size, name, most = smallest[0]
        shares[name].append(pods)
        heapreplace(smallest, (size + 1 if size + 1 < most else 1 << 60, name, most))
    return shares
