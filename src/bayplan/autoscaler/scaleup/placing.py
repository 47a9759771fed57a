"""Purchases put into a fork: new nodes, and on each the pods that it is for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from bayplan.autoscaler.candidates import Purchase
from bayplan.fit import Snapshot
from bayplan.fit.batches import add_node, new_names
from bayplan.fit.batches.fill import Placed
from bayplan.fit.batches.placing import place_on


def put_in_place(snapshot: Snapshot, purchases: Sequence[Purchase]) -> None:
    """Add the nodes and assume their pods, and those that are counted on to fit nodes which are
    there.
    """
    for pod, node in _placements(snapshot, purchases):
        place_on(snapshot, pod, node)


def holds(snapshot: Snapshot, purchases: Sequence[Purchase]) -> bool:
    """Whether every pod really fits the node that it is said to be helped by."""
    with snapshot.fork():
        for pod, node in _placements(snapshot, purchases):
            if snapshot.refusal(pod, node) is not None:
                return False
            place_on(snapshot, pod, node)
    return True


def _placements(snapshot: Snapshot, purchases: Sequence[Purchase]) -> Iterator[Placed]:
    """Pods and their nodes; each new node is added when it is needed, and the spare ones last."""
    for purchase in purchases:
        yield from purchase.placed
    for purchase in purchases:
        template = purchase.view.template
        if template is None:
            continue
        names = islice(new_names(snapshot, template), purchase.nodes)
        there: list[str] = []
        for number, pod in purchase.in_order():
            while len(there) <= number:
                there.append(next(names))
                add_node(snapshot, template, there[-1])
            yield pod, there[number]
        for name in names:
            add_node(snapshot, template, name)
