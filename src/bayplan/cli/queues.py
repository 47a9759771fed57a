"""`bayplan queues`: the tree of queues, what each has, and who waits for what."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter
from rich.text import Text

from bayplan.cli.errors import EXIT_OK, BadInput
from bayplan.cli.options.cluster import Output
from bayplan.cli.options.source import HERE, ClusterSource, incomplete_data
from bayplan.cli.text.output import Format, emit, show
from bayplan.cli.text.queues import cycle_blocks, survey_blocks
from bayplan.kube.loading import Loaded
from bayplan.kube.queueing import PodGroup, Queue
from bayplan.queues import (
    OURS,
    VOLCANO,
    QueuePolicyName,
)
from bayplan.reports.queues import (
    cycle_data,
    of_namespaces,
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
    """Show the tree of queues: quota, what is allocated and reserved, and who waits for what.

    Of the cluster that kubectl would talk to, or of a dump (-f). A queue's quota is what it can
    really have: its capability, and no more than those above it leave it. What is reserved is held
    for pods that quota has let through and that have no node yet. For each group that waits: its
    position in its queue, what it asks for, and what it waits for; who has room takes it before the
    next is asked. With -n, only groups of that namespace. `-o wide` shows what queues deserve, are
    guaranteed and are asked for, and all groups of long queues.

    Exit codes: 0 it was shown, 2 bad input.

    Parameters
    ----------
    queue_policy
        What a queue deserves: what is written in it (capacity), or a share of the nodes by weight
        (proportion).
    scheduler_name
        Count only pods of this schedulerName; may be repeated.
    next_cycle
        Show instead what one cycle would decide now: groups admitted, gates removed, pods bound,
        evictions, and what is waited for. Nothing is done.
    rules
        Decide that cycle by our rules, or by Volcano's, with its limits by today's nodes and its
        defects; docs/queues.md has the list.
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
    found = of_namespaces(survey_queues(objects, queue_policy, names), source.shows)
    if output.is_for_people:
        show([*survey_blocks(found, wide=output is Format.wide), *map(Text, notes)])
    else:
        emit({"incomplete": incomplete, **queues_data(found)}, output)
    return EXIT_OK


def _loaded(source: ClusterSource, command: str) -> Loaded:
    found = source.load(command)
    if not any(isinstance(one, Queue | PodGroup) for one in found.objects):
        raise BadInput(f"there is neither a Queue nor a PodGroup in the {source.where}")
    return found
