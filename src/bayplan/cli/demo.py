"""`bayplan demo`: the stories of the design, one after the other, each with its gate on and off."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.text import Text

from bayplan.cli.errors import EXIT_NO, EXIT_OK, BadInput
from bayplan.cli.options.flags import Switch
from bayplan.cli.simulated.cluster import ClusterRequest, quiet, run_live
from bayplan.cli.simulated.stories import PlainTeller, Teller, Told, all_gates, typed
from bayplan.cli.text.output import counted, is_read_by_people, show
from bayplan.client.daemon import fastest_loop
from bayplan.client.signals import ended_by_signals
from bayplan.embedded.simulation.clusterfile import ClusterSpec, read_cluster
from bayplan.lab.crew import Crew
from bayplan.lab.stories import AT_WORK, BY_GATE, STORIES, AnyStory

SOON = 90.0
"""Seconds after which whatever comes later in a story comes to a cluster that is kept up: its first
nodes are there then, and run what was there before.
"""
COMPARES = STORIES[-1]
"""The story at whose end all gates are compared."""


def demo(
    *,
    story: tuple[int, ...] = (),
    keep: Switch = False,
    plain: Switch = False,
    ui: Switch = False,
) -> int:
    """Tell what Bayplan is for: eight stories, each on a cluster in this process, with its feature
    gate on and off beside each other.

    Nothing is needed but this machine, and nothing is left behind. Ends with 1 if a story does not
    come out as promised.

    Parameters
    ----------
    story
        Tell only this one; may be repeated.
    keep
        Leave the cluster of that story up on the wall's clock, with its kubeconfig, until Ctrl-C.
    plain
        Write plain lines, one for every change, as fast as they come; so does output that is not a
        terminal.
    ui
        With --keep, serve the page of `bayplan ui` of that cluster, and say where.
    """
    chosen = _chosen(story)
    if keep and len(chosen) != 1:
        raise BadInput(f"--keep: {_which(story)}")
    if ui and not keep:
        raise BadInput("--ui: the page is of the cluster that stays; add --keep and --story N")
    teller = PlainTeller() if plain or not is_read_by_people() else Teller()
    with ended_by_signals(), quiet():
        start = time.monotonic()
        told = _tell(teller, chosen)
        show([Text(), *_verdict(told, time.monotonic() - start)])
        sys.stdout.flush()
    if keep:
        _keep(chosen[0], ui=ui)
    return EXIT_OK if all(one.is_as_promised for one in told) else EXIT_NO


def _which(numbers: Sequence[int]) -> str:
    if not numbers:
        return "say with --story N which cluster is to stay"
    named = ", ".join(map(str, dict.fromkeys(numbers)))
    return f"one cluster can stay, and --story names {named}; give --story once"


def _chosen(numbers: Sequence[int]) -> list[AnyStory]:
    known = {one.number: one for one in STORIES}
    for number in numbers:
        if number not in known:
            raise BadInput(f"--story {number}: there are stories 1 to {len(STORIES)}")
    return [known[number] for number in dict.fromkeys(numbers)] or list(STORIES)


def _tell(teller: Teller, chosen: list[AnyStory]) -> list[Told]:
    told: list[Told] = []
    for one in chosen:
        teller.begin(one, len(STORIES))
        told.append(teller.run(one))
        teller.end(told[-1], last=one is chosen[-1])
        if one is COMPARES:
            missing = [other for other in BY_GATE.values() if other not in chosen]
            beside = [teller.quietly(other) for other in missing]
            show(all_gates(sorted([*told, *beside], key=lambda one: one.story.number)))
    return told


def _verdict(told: Sequence[Told], seconds: float) -> Iterator[Text]:
    failed = [one for one in told if not one.is_as_promised]
    stories = counted(len(told), "story").replace("storys", "stories")
    if not failed:
        yield Text(f"{stories} in {seconds:.0f}s, as promised.", style="bold green")
    for one in failed:
        title = f"story {one.story.number}, {one.story.title}, did not end as promised:"
        said = "; ".join(check.text for check in one.checks if not check.holds)
        yield Text(f"{title} {said}", style="bold red")


def _keep(story: AnyStory, *, ui: bool) -> None:
    """Run the story's cluster on the wall's clock until somebody ends it."""
    hints = ["", f"Story {story.number} on the wall's clock, until Ctrl-C. Elsewhere, try:"]
    hints += [f"  {typed(line)}" for line in story.commands]
    spec = read_cluster(story.cluster)
    if any(one.at > SOON for one in spec.workloads):
        hints.append(f"What comes later in the story comes after {SOON:.0f}s here.")
    wish = ClusterRequest(sooner(spec), Crew(AT_WORK), hints=[*hints, ""], ui=ui)
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        runner.run(run_live(wish))


def sooner(spec: ClusterSpec) -> ClusterSpec:
    """The same cluster, in which nobody has to wait for what comes later."""
    workloads = tuple(replace(one, at=min(one.at, SOON)) for one in spec.workloads)
    return replace(spec, workloads=workloads)
