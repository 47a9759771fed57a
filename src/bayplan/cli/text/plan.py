"""A plan as text: the summary, new nodes, pods that stay pending, and unneeded nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from bayplan.autoscaler.offline import OfflinePlan
from bayplan.autoscaler.plan import AutoscalerPlan, MixResult, NoScaleUpInfo, Removal, ScaleUp
from bayplan.cli.text.output import indented, printable, table
from bayplan.reports.plan import total_cost

MOST_NODES_SHOWN = 20
MOST_PODS_NAMED = 3
MOST_GROUPS_NAMED = 3

Row = list[str | Text]


def blocks(shown: OfflinePlan, notes: Sequence[str], *, wide: bool) -> Iterator[RenderableType]:
    """Yield what one loop would do, then notes about incomplete input."""
    plan = shown.plan
    yield Text(_verdict(shown), style="bold")
    yield from (Text(line) for line in _asides(shown))
    if plan.scale_ups:
        yield from _section("Nodes to add", ["GROUP", "NODES", "SIZE", "COST/H", "FOR"],
                            [_scale_up(one) for one in plan.scale_ups])  # fmt: skip
        yield from _new_nodes(plan.scale_ups, wide=wide)
    if plan.pending:
        yield from _pending(plan.pending, wide=wide)
    if plan.removals:
        yield from _section("Unneeded nodes", ["NODE", "GROUP", "SAVES/H", "REASON"],
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
            return f"Nothing to add: no new node helps {_count(len(plan.pending), 'pod')}."
        return "Nothing to add." if plan.fits else "Nothing to add: no unschedulable pods."
    cost = total_cost(shown)
    price = f" at {cost:.2f} an hour" if cost is not None else ""
    return f"{_count(plan.new_nodes, 'node')} to add{price} for {_count(helped, 'pod')}."


def _asides(shown: OfflinePlan) -> Iterator[str]:
    plan = shown.plan
    if plan.message:
        yield f"Note: {plan.message}."
    if plan.mixed is not None and plan.scale_ups:
        yield _bound(plan.mixed)
    if shown.nodes_without_attach_limits is not None:
        yield f"A planner that ignores attach limits would add {shown.nodes_without_attach_limits}."
    if plan.fits:
        some = len(plan.fits)
        fit = "fits" if some == 1 else "fit"
        yield f"{_count(some, 'pending pod')} {fit} on existing nodes."
    for why, count in sorted(plan.ignored_pods.items()):
        yield f"{_count(count, 'pending pod')} not counted: {why.replace('_', ' ')}."
    for note in plan.notes:
        yield printable(f"Note: {note.message}")
    for group, texts in sorted(shown.problems.items()):
        yield from (printable(f"Note: {group}: {text}.") for text in texts)


def _bound(mixed: MixResult) -> str:
    if mixed.priced:
        text = f"Lower bound for these pods: {mixed.bound:.2f} an hour"
    else:
        text = f"Lower bound for these pods: {mixed.bound:.0f} nodes"
    return f"{text} ({mixed.gap:.1%} below)." if mixed.gap >= 0.0005 else f"{text}."


def _section(title: str, headings: Sequence[str], rows: list[Row]) -> Iterator[RenderableType]:
    yield ""
    yield Text(title, style="bold")
    yield indented(table(headings, rows))


def _scale_up(one: ScaleUp) -> Row:
    helped = sum(map(len, one.nodes))
    size = f"{one.from_size} -> {one.to_size} (max {one.max_size})"
    return [one.group, str(one.count), size, _money(one.cost), _count(helped, "pod")]


def _new_nodes(scale_ups: Sequence[ScaleUp], *, wide: bool) -> Iterator[RenderableType]:
    rows: list[Row] = []
    for one in scale_ups:
        for number, pods in enumerate(one.nodes, 1):
            rows.append([f"{one.group} #{number}", _named(pods, wide=wide)])
    shown = rows if wide else rows[:MOST_NODES_SHOWN]
    more = len(rows) - len(shown)
    if more:
        shown = [*shown, [f"and {more} more", "-o wide shows all"]]
    yield from _section("Pods of each new node", ["NEW NODE", "PODS"], shown)


def _pending(left: Sequence[NoScaleUpInfo], *, wide: bool) -> Iterator[RenderableType]:
    """Pods that stay pending; those for the same reasons together."""
    alike: dict[tuple[object, ...], list[NoScaleUpInfo]] = defaultdict(list)
    for one in left:
        alike[one.cause, one.driver, one.never, tuple(sorted(one.by_group.items()))].append(one)
    rows: list[Row] = []
    for some in alike.values():
        first = some[0]
        names = _named([one.pod for one in some], wide=wide)
        cause = f"{first.cause.value} {first.driver}".strip()
        why = _why(first.by_group, first.details if len(some) == 1 or wide else {})
        rows.append([names, cause, "never" if first.never else "not now", why])
    yield from _section("Pods that stay pending", ["PODS", "LACK", "FITS", "REASONS"], rows)


def _why(by_group: Mapping[str, tuple[str, ...]], details: Mapping[str, tuple[str, ...]]) -> Text:
    """Return the reasons, each with its node groups."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, reasons in sorted(by_group.items()):
        detail = "; ".join(details.get(name, ()))
        groups[": ".join(filter(None, (", ".join(reasons), detail)))].append(name)
    if not groups:
        return Text("no node groups")
    if len(groups) == 1 and len(by_group) > MOST_GROUPS_NAMED:
        return Text(printable(f"every group: {next(iter(groups))}"))
    lines = (f"{', '.join(names)}: {why}" for why, names in groups.items())
    return Text("\n".join(map(printable, lines)))


def _removal(one: Removal, *, wide: bool) -> Row:
    moved = one.moved if wide else one.moved[:MOST_PODS_NAMED]
    pods = ", ".join(f"{pod} to {node}" for pod, node in moved)
    more = len(one.moved) - len(moved)
    reason = f"{one.reason}: {pods}{f' and {more} more' if more else ''}" if pods else one.reason
    return [one.node, one.group, _money(one.saves), reason]


def _in_full(plan: AutoscalerPlan) -> Iterator[RenderableType]:
    """Yield the considered groups, pods that fit on existing nodes, and unremovable nodes."""
    if plan.considered:
        rows: list[Row] = [
            [one.group, str(one.nodes), str(one.pods), _money(one.cost), one.refused or "chosen"]
            for one in plan.considered
        ]
        headings = ["GROUP", "NODES", "PODS", "COST/H", "CHOSEN"]
        yield from _section("Node groups considered", headings, rows)
    if plan.fits:
        fits: list[Row] = [[pod, node] for pod, node in sorted(plan.fits.items())]
        yield from _section("Pods that fit on existing nodes", ["POD", "NODE"], fits)
    if plan.unremovable:
        stays: list[Row] = [[one.node, one.reason, one.pod, one.detail] for one in plan.unremovable]
        yield from _section("Unremovable nodes", ["NODE", "REASON", "POD", "DETAIL"], stays)


def _named(pods: Sequence[str], *, wide: bool) -> str:
    named = pods if wide else pods[:MOST_PODS_NAMED]
    more = len(pods) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "") or "none"


def _money(cost: float | None) -> str:
    return "-" if cost is None else f"{cost:.2f}"


def _count(count: int, of: str) -> str:
    return f"{count:,} {of}" if count == 1 else f"{count:,} {of}s"
