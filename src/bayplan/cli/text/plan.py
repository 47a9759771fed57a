"""A plan for people: the verdict, then what is bought, who stays pending, what is given back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from bayplan.autoscaler.offline import OfflinePlan
from bayplan.autoscaler.plan import LeftPending, Mixed, Plan, Removal, ScaleUp
from bayplan.cli.text.output import indented, printable, table
from bayplan.reports.plan import total_cost

MOST_NODES_SHOWN = 20
MOST_PODS_NAMED = 3
MOST_GROUPS_NAMED = 3

Row = list[str | Text]


def blocks(shown: OfflinePlan, notes: Sequence[str], *, wide: bool) -> Iterator[RenderableType]:
    """What a loop would do, and what that rests on less than it should."""
    plan = shown.plan
    yield Text(_verdict(shown), style="bold")
    yield from (Text(line) for line in _asides(shown))
    if plan.scale_ups:
        yield from _section("Nodes to add", ["GROUP", "NODES", "SIZE", "COST/H", "FOR"],
                            [_bought(one) for one in plan.scale_ups])  # fmt: skip
        yield from _new_nodes(plan.scale_ups, wide=wide)
    if plan.pending:
        yield from _pending(plan.pending, wide=wide)
    if plan.removals:
        yield from _section("Nodes that are not needed", ["NODE", "GROUP", "SAVES/H", "WHY"],
                            [_removal(one, wide=wide) for one in plan.removals])  # fmt: skip
    if wide:
        yield from _in_full(plan)
    if notes:
        yield ""
    yield from (Text(note) for note in notes)


def _verdict(shown: OfflinePlan) -> str:
    plan = shown.plan
    helped = sum(len(pods) for one in plan.scale_ups for pods in one.nodes)
    if not plan.scale_ups:
        if plan.pending:
            return f"Nothing to add: {_count(len(plan.pending), 'pod')} cannot be helped."
        return "Nothing to add." if plan.fits else "Nothing to add: no pod waits for a node."
    cost = total_cost(shown)
    price = f" at {cost:.2f} an hour" if cost is not None else ""
    return f"{_count(plan.bought, 'node')} to add{price} for {_count(helped, 'pod')}."


def _asides(shown: OfflinePlan) -> Iterator[str]:
    plan = shown.plan
    if plan.message:
        yield f"Note: {plan.message}."
    if plan.mixed is not None and plan.scale_ups:
        yield _bound(plan.mixed)
    if shown.blind is not None:
        yield f"A planner blind to volumes would add {shown.blind}."
    if plan.fits:
        some = len(plan.fits)
        fit = "fits" if some == 1 else "fit"
        yield f"{_count(some, 'waiting pod')} {fit} nodes that are there."
    for why, count in sorted(plan.set_aside.items()):
        yield f"{_count(count, 'waiting pod')} not counted: {why.replace('_', ' ')}."
    for note in plan.notes:
        yield printable(f"Note: {note.message}")
    for group, texts in sorted(shown.problems.items()):
        yield from (printable(f"Note: {group}: {text}.") for text in texts)


def _bound(mixed: Mixed) -> str:
    if mixed.priced:
        said = f"No way of helping these pods costs less than {mixed.bound:.2f} an hour"
    else:
        said = f"No way of helping these pods takes fewer than {mixed.bound:.0f} nodes"
    return f"{said} ({mixed.gap:.1%} below)." if mixed.gap >= 0.0005 else f"{said}."


def _section(title: str, headings: Sequence[str], rows: list[Row]) -> Iterator[RenderableType]:
    yield ""
    yield Text(title, style="bold")
    yield indented(table(headings, rows))


def _bought(one: ScaleUp) -> Row:
    helped = sum(map(len, one.nodes))
    size = f"{one.from_size} -> {one.to_size} (max {one.max_size})"
    return [one.group, str(one.count), size, _money(one.cost), _count(helped, "pod")]


def _new_nodes(bought: Sequence[ScaleUp], *, wide: bool) -> Iterator[RenderableType]:
    rows: list[Row] = []
    for one in bought:
        for number, pods in enumerate(one.nodes, 1):
            rows.append([f"{one.group} #{number}", _named(pods, wide=wide)])
    shown = rows if wide else rows[:MOST_NODES_SHOWN]
    more = len(rows) - len(shown)
    if more:
        shown = [*shown, [f"and {more} more", "-o wide shows all"]]
    yield from _section("What each is for", ["NEW NODE", "PODS"], shown)


def _pending(left: Sequence[LeftPending], *, wide: bool) -> Iterator[RenderableType]:
    """Pods that stay pending; those for the same reasons together."""
    alike: dict[tuple[object, ...], list[LeftPending]] = defaultdict(list)
    for one in left:
        alike[one.cause, one.driver, one.never, tuple(sorted(one.by_group.items()))].append(one)
    rows: list[Row] = []
    for some in alike.values():
        first = some[0]
        names = _named([one.pod for one in some], wide=wide)
        cause = f"{first.cause.value} {first.driver}".strip()
        why = _why(first.by_group, first.details if len(some) == 1 or wide else {})
        rows.append([names, cause, "never" if first.never else "not now", why])
    yield from _section("Pods that stay pending", ["PODS", "LACK", "FITS", "WHY"], rows)


def _why(by_group: Mapping[str, tuple[str, ...]], details: Mapping[str, tuple[str, ...]]) -> Text:
    """Reasons, each with the groups that it is true of."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, reasons in sorted(by_group.items()):
        said = "; ".join(details.get(name, ()))
        groups[": ".join(filter(None, (", ".join(reasons), said)))].append(name)
    if not groups:
        return Text("there is no node group")
    if len(groups) == 1 and len(by_group) > MOST_GROUPS_NAMED:
        return Text(printable(f"every group: {next(iter(groups))}"))
    lines = (f"{', '.join(names)}: {why}" for why, names in groups.items())
    return Text("\n".join(map(printable, lines)))


def _removal(one: Removal, *, wide: bool) -> Row:
    moved = one.moved if wide else one.moved[:MOST_PODS_NAMED]
    said = ", ".join(f"{pod} to {node}" for pod, node in moved)
    more = len(one.moved) - len(moved)
    why = f"{one.reason}: {said}{f' and {more} more' if more else ''}" if said else one.reason
    return [one.node, one.group, _money(one.saves), why]


def _in_full(plan: Plan) -> Iterator[RenderableType]:
    """What else was looked at."""
    if plan.considered:
        rows: list[Row] = [
            [one.group, str(one.nodes), str(one.pods), _money(one.cost), one.refused or "chosen"]
            for one in plan.considered
        ]
        headings = ["GROUP", "NODES", "PODS", "COST/H", "CHOSEN"]
        yield from _section("Groups by themselves", headings, rows)
    if plan.fits:
        fits: list[Row] = [[pod, node] for pod, node in sorted(plan.fits.items())]
        yield from _section("Pods that fit nodes which are there", ["POD", "NODE"], fits)
    if plan.stays:
        stays: list[Row] = [[one.node, one.reason, one.pod, one.detail] for one in plan.stays]
        yield from _section("Nodes that stay", ["NODE", "REASON", "POD", "DETAIL"], stays)


def _named(pods: Sequence[str], *, wide: bool) -> str:
    named = pods if wide else pods[:MOST_PODS_NAMED]
    more = len(pods) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "") or "nobody"


def _money(cost: float | None) -> str:
    return "-" if cost is None else f"{cost:.2f}"


def _count(count: int, of: str) -> str:
    return f"{count:,} {of}" if count == 1 else f"{count:,} {of}s"
