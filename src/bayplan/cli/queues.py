"""`bayplan queues`: the tree of queues with quota, usage, and waiting groups."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter
from rich.text import Text

from bayplan.cli.errors import EXIT_OK, BadInput
from bayplan.cli.options.cluster import Output
from bayplan.cli.options.source import HERE, ClusterSource, incomplete_data
from bayplan.cli.text.output import Format, emit, show
from bayplan.cli.text.queues import cycle_blocks, queue_blocks
from bayplan.kube.manifests import LoadResult
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.queues import QueuePolicyName
from bayplan.queues.rules import OURS, VOLCANO
from bayplan.reports.queues import (
    cycle_data,
    in_namespaces,
    plan_cycle,
    queues_data,
    survey_queues,
)


def queues(  # noqa: PLR0913 - one for each option of the command
    *,
    source: ClusterSource = HERE,
    output: Output = Format.table,
    queue_policy: QueuePolicyName = "capacity",
    scheduler_name: tuple[str, ...] = (),
    next_cycle: Annotated[bool, Parameter(name="--next", negative="")] = False,
    rules: Literal["ours", "volcano"] = "ours",
) -> int:
    """Show the tree of queues: quota, allocated and reserved resources, and waiting groups.

    The cluster is a dump (-f), or the one that kubectl uses. A queue's quota is its capability,
    limited by its parents. Reserved resources are held for ungated pods that have no node yet. For
    each waiting group: its position in the queue, its request, and what it waits for, with groups
    before it counted as admitted if they fit. With -n, only groups of that namespace. `-o wide`
    also shows deserved, guaranteed and requested resources, and all groups of long queues.

    Exit codes: 0 it was shown, 2 bad input.

    Parameters
    ----------
    queue_policy
        How a queue's deserved resources are determined: from its spec (capacity), or as a share of
        the nodes by weight (proportion).
    scheduler_name
        Count only pods of this schedulerName; may be repeated.
    next_cycle
        Show the decisions of the next cycle instead: groups admitted, gates removed, pods bound,
        evictions, and what groups wait for. Nothing is changed.
    rules
        Decide that cycle by our rules, or by Volcano's, including its defects; docs/queues.md
        lists the differences.
    """
    command = "queues --next" if next_cycle else "queues"
    loaded = _loaded(source, command)
    objects, names = loaded.objects, frozenset(scheduler_name)
    notes, incomplete = source.notes(loaded, command), incomplete_data(loaded, command)
    if next_cycle:
        plan = plan_cycle(objects, queue_policy, names, VOLCANO if rules == "volcano" else OURS)
        if output.is_for_people:
            show([*cycle_blocks(plan), *map(Text, notes)])
        else:
            emit({"incomplete": incomplete, **cycle_data(plan)}, output)
        return EXIT_OK
    found = in_namespaces(survey_queues(objects, queue_policy, names), source.shows)
    if output.is_for_people:
        show([*queue_blocks(found, wide=output is Format.wide), *map(Text, notes)])
    else:
        emit({"incomplete": incomplete, **queues_data(found)}, output)
    return EXIT_OK


def _loaded(source: ClusterSource, command: str) -> LoadResult:
    found = source.load(command)
    if not any(isinstance(one, Queue | PodGroup) for one in found.objects):
        raise BadInput(f"the {source.where} contains neither Queues nor PodGroups")
    return found
