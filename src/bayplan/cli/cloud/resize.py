"""`bayplan cloud resize`: a group gets the size that a person wants."""

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
class Resize:
    """What has to be done for a size."""

    buy: int = 0
    give_back: tuple[str, ...] = ()


def resize(group: str, size: int, /, *, cloud: Cloud = "") -> int:
    """Buy or give back instances until a group has a size.

    Parameters
    ----------
    group
        The node group.
    size
        How many instances it is to have, between its bounds.
    """
    if size < 0:
        raise BadInput(f"{size}: a group cannot have less than 0 instances")

    async def work(provider: Provider) -> int:
        target = await provider.target_size(group)
        plan = plan_resize(target, size, await provider.instances(group))
        if plan.buy:
            await provider.increase(group, plan.buy)
        if plan.give_back:
            await provider.delete_nodes(group, [NodeRef(one, one) for one in plan.give_back])
        show([_said(group, target, size, plan)])
        return EXIT_OK

    return ask(cloud, work)


def plan_resize(target: int, size: int, instances: Sequence[Instance]) -> Resize:
    """Buy what is missing, or give back what is least of a loss: the newest of the worst."""
    if size >= target:
        return Resize(buy=size - target)
    newest = [one for one in instances[::-1] if one.state is not InstanceState.DELETING]
    worst = sorted(newest, key=lambda one: _ORDER[state_of(one)])
    return Resize(give_back=tuple(one.provider_id for one in worst[: target - size]))


def _said(group: str, target: int, size: int, plan: Resize) -> str:
    if plan.buy:
        return f"{group}: {target} -> {size}, bought {plan.buy}"
    if plan.give_back:
        return f"{group}: {target} -> {size}, gave back {', '.join(plan.give_back)}"
    return f"{group}: has {size} already"
