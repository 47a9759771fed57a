"""Questions for expanders: candidates as the decision makes them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace

from bayplan.autoscaler.estimate.options import ExpanderChoice, ExpanderRequest, NodeGroupOption
from bayplan.autoscaler.expanders import Chain, ExpanderContext, parse_expanders
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit import Snapshot
from bayplan.fit.batches import NodeTemplate, group_pods, options
from bayplan.kube.pods import Pod
from tests.autoscaler.cluster_views import group
from tests.builders import PodBuilder, make_node, make_pod


def machine(
    name: str, cpu: str = "4", memory: str = "16Gi", *, price: float | None = None, most: int = 50
) -> NodeGroupView:
    node = make_node(name).capacity(cpu=cpu, memory=memory, pods=110).ready().obj()
    return replace(group(name, NodeTemplate(node), most=most), price=price)


def pods(count: int, cpu: str, memory: str = "1Gi", name: str = "p") -> list[PodBuilder]:
    return [
        make_pod(f"{name}-{at}").uid(f"{name}-{at}").cpu(cpu).memory(memory) for at in range(count)
    ]


def request(
    views: Sequence[NodeGroupView],
    waiting: Iterable[Pod],
    snapshot: Snapshot | None = None,
    room: int | None = None,
) -> ExpanderRequest:
    """What is asked of an expander about these groups and pods."""
    snapshot = snapshot or Snapshot()
    groups = group_pods(snapshot, waiting)
    templates = [view.template for view in views if view.template is not None]
    most = [view.max_increase if room is None else min(room, view.max_increase) for view in views]
    found = options(snapshot, templates, groups, most)
    candidates = [
        NodeGroupOption(view, template, option, option.estimate.nodes, limit)
        for view, template, option, limit in zip(views, templates, found, most, strict=True)
        if option.estimate.nodes
    ]
    return ExpanderRequest(snapshot, tuple(groups), tuple(candidates), room)


def choose(
    expanders: str, asked: ExpanderRequest, context: ExpanderContext | None = None
) -> ExpanderChoice:
    """What a chain of expanders answers."""
    context = context or ExpanderContext(random.Random(1))
    return Chain(parse_expanders(expanders), context).choose(asked)


def names(choice: ExpanderChoice) -> list[str]:
    return [one.view.id for one in choice.new_nodes]
