"""`bayplan cloud list`: node groups, or the instances of one group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from bayplan.cli.cloud.connection import Cloud, ask
from bayplan.cli.errors import EXIT_OK
from bayplan.cli.options.cluster import Output
from bayplan.cli.text.output import Format, emit, show, table
from bayplan.nodegroups import (
    CloudNodeGroup,
    Instance,
    NodeGroupNotFoundError,
    NodeRef,
    Provider,
    UnimplementedError,
)

if TYPE_CHECKING:
    from bayplan.base.values import JsonValue

FAILED = "failed"


@dataclass(frozen=True, slots=True)
class _Line:
    """A node group with its size, instance states and price."""

    group: CloudNodeGroup
    target: int
    states: Counter[str]
    price: float | None
    """Per hour; None if the provider has no price."""


def list_groups(group: str = "", /, *, cloud: Cloud = "", output: Output = Format.table) -> int:
    """List node groups, or the instances of one group.

    Parameters
    ----------
    group
        Show this group's instances instead of all groups.
    """

    async def work(provider: Provider) -> int:
        if group:
            await provider.target_size(group)
            _show_instances(await provider.instances(group), output)
        else:
            _show_groups([await _line(provider, one) for one in await provider.groups()], output)
        return EXIT_OK

    return ask(cloud, work)


def state_of(instance: Instance) -> str:
    """Return an instance's state as it is shown."""
    return instance.state.value if instance.error is None else FAILED


async def _line(provider: Provider, group: CloudNodeGroup) -> _Line:
    target = await provider.target_size(group.id)
    states = Counter(state_of(one) for one in await provider.instances(group.id))
    return _Line(group, target, states, await _price(provider, group.id))


async def _price(provider: Provider, group: str) -> float | None:
    now = datetime.now(UTC)
    try:
        node = NodeRef.of((await provider.template(group)).node)
        return await provider.node_price(node, now, now + timedelta(hours=1))
    except (UnimplementedError, NodeGroupNotFoundError):
        return None


def _show_groups(lines: Sequence[_Line], output: Format) -> None:
    if not output.is_for_people:
        emit({"nodeGroups": [_as_data(line) for line in lines]}, output)
        return
    headings = ["GROUP", "MIN", "MAX", "TARGET", "RUNNING", "CREATING", "FAILED", "PRICE/H"]
    headings += ["DEBUG"] if output is Format.wide else []
    show([table(headings, [_row(line, wide=output is Format.wide) for line in lines])])


def _row(line: _Line, *, wide: bool) -> list[str]:
    group = line.group
    counts = [str(line.states[state]) for state in ("running", "creating", FAILED)]
    price = "-" if line.price is None else f"{line.price:.4g}"
    row = [group.id, str(group.min_size), str(group.max_size), str(line.target), *counts, price]
    return [*row, group.debug] if wide else row


def _as_data(line: _Line) -> JsonValue:
    return {
        "id": line.group.id,
        "minSize": line.group.min_size,
        "maxSize": line.group.max_size,
        "targetSize": line.target,
        "instances": dict(sorted(line.states.items())),
        "pricePerHour": line.price,
        "debug": line.group.debug,
    }


def _show_instances(instances: Sequence[Instance], output: Format) -> None:
    if not output.is_for_people:
        emit({"instances": [_instance_as_data(one) for one in instances]}, output)
        return
    rows = [[one.provider_id, state_of(one), _error(one)] for one in instances]
    show([table(["INSTANCE", "STATE", "ERROR"], rows)])


def _error(one: Instance) -> str:
    return "" if one.error is None else f"{one.error.code}: {one.error.message}"


def _instance_as_data(one: Instance) -> JsonValue:
    data: dict[str, JsonValue] = {"providerID": one.provider_id, "state": one.state.value}
    if one.error is not None:
        data["error"] = {
            "class": one.error.kind.value,
            "code": one.error.code,
            "message": one.error.message,
        }
    return data
