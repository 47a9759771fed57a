"""`bayplan cloud resize`: set the size of a node group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bayplan.cli.cloud.connection import Cloud, ask
from bayplan.cli.cloud.list import FAILED, state_of
from bayplan.cli.errors import EXIT_OK, BadInput
from bayplan.cli.text.output import show
from bayplan.nodegroups import Instance, InstanceState, NodeRef, Provider

_ORDER = {FAILED: 0, "creating": 1, "running": 2}


@dataclass(frozen=True, slots=True)
class ResizePlan:
    """The number of instances to add, or the instances to remove."""

    add: int = 0
    remove: tuple[str, ...] = ()


def resize(group: str, size: int, /, *, cloud: Cloud = "") -> int:
    """Add or remove instances until a node group has the given size.

    Parameters
    ----------
    group
        The node group.
    size
        The number of instances, within the group's bounds.
    """
    if size < 0:
        raise BadInput(f"{size}: the size must be 0 or more")

    async def work(provider: Provider) -> int:
        target = await provider.target_size(group)
        plan = plan_resize(target, size, await provider.instances(group))
        if plan.add:
            await provider.increase(group, plan.add)
        if plan.remove:
            await provider.delete_nodes(group, [NodeRef(one, one) for one in plan.remove])
        show([_summary(group, target, size, plan)])
        return EXIT_OK

    return ask(cloud, work)


def plan_resize(target: int, size: int, instances: Sequence[Instance]) -> ResizePlan:
    """Plan to add missing instances, or to remove failed, then starting, then the newest ones."""
    if size >= target:
        return ResizePlan(add=size - target)
    newest = [one for one in instances[::-1] if one.state is not InstanceState.DELETING]
    worst = sorted(newest, key=lambda one: _ORDER[state_of(one)])
    return ResizePlan(remove=tuple(one.provider_id for one in worst[: target - size]))


def _summary(group: str, target: int, size: int, plan: ResizePlan) -> str:
    if plan.add:
        return f"{group}: {target} -> {size}, added {plan.add}"
    if plan.remove:
        return f"{group}: {target} -> {size}, removed {', '.join(plan.remove)}"
    return f"{group}: size is already {size}"
