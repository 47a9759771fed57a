"""`bayplan demo`: the eight stories, each with its feature gate on and off."""

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
from bayplan.cli.simulated.stories import (
    PlainStoryPresenter,
    StoryPresenter,
    StoryResult,
    all_gates,
    typed,
)
from bayplan.cli.text.output import counted, is_read_by_people, show
from bayplan.client.daemon import fastest_loop
from bayplan.client.signals import interrupted_by_signals
from bayplan.embedded.simulation.clusterfile import ClusterSpec, read_cluster
from bayplan.lab.daemons import LabDaemons
from bayplan.lab.stories import BY_GATE, STORIES, STORY_DAEMONS, AnyStory

SOON = 90.0
"""With --keep, the latest start of a story's workloads in seconds: the first nodes run by then."""
COMPARES = STORIES[-1]
"""The story after which all gates are compared."""


def demo(
    *,
    story: tuple[int, ...] = (),
    keep: Switch = False,
    plain: Switch = False,
    ui: Switch = False,
) -> int:
    """Show what Bayplan does in eight stories, with its feature gates on and off side by side.

    Each story runs on a simulated cluster in this process; nothing is left behind. Exits with 1 if
    a story does not have the expected result.

    Parameters
    ----------
    story
        Run only this story; may be repeated.
    keep
        Keep the cluster of the story running in real time, with its kubeconfig, until Ctrl-C.
    plain
        Print plain lines, one for every change, without delays; the default if the output is not a
        terminal.
    ui
        With --keep, also serve the page of `bayplan ui`, and print its address.
    """
    chosen = _chosen(story)
    if keep and len(chosen) != 1:
        raise BadInput(f"--keep: {_which(story)}")
    if ui and not keep:
        raise BadInput("--ui: needs --keep and --story N, the cluster that the page shows")
    presenter = PlainStoryPresenter() if plain or not is_read_by_people() else StoryPresenter()
    with interrupted_by_signals(), quiet():
        start = time.monotonic()
        results = _run_stories(presenter, chosen)
        show([Text(), *_verdict(results, time.monotonic() - start)])
        sys.stdout.flush()
    if keep:
        _keep(chosen[0], ui=ui)
    return EXIT_OK if all(one.is_as_expected for one in results) else EXIT_NO


def _which(numbers: Sequence[int]) -> str:
    if not numbers:
        return "needs --story N, the story whose cluster is kept"
    named = ", ".join(map(str, dict.fromkeys(numbers)))
    return f"keeps the cluster of one story, but --story is given for {named}"


def _chosen(numbers: Sequence[int]) -> list[AnyStory]:
    known = {one.number: one for one in STORIES}
    for number in numbers:
        if number not in known:
            raise BadInput(f"--story {number}: must be from 1 to {len(STORIES)}")
    return [known[number] for number in dict.fromkeys(numbers)] or list(STORIES)


def _run_stories(presenter: StoryPresenter, chosen: list[AnyStory]) -> list[StoryResult]:
    results: list[StoryResult] = []
    for one in chosen:
        presenter.begin(one, len(STORIES))
        results.append(presenter.run(one))
        presenter.end(results[-1], last=one is chosen[-1])
        if one is COMPARES:
            missing = [other for other in BY_GATE.values() if other not in chosen]
            beside = [presenter.quietly(other) for other in missing]
            show(all_gates(sorted([*results, *beside], key=lambda one: one.story.number)))
    return results


def _verdict(results: Sequence[StoryResult], seconds: float) -> Iterator[Text]:
    failed = [one for one in results if not one.is_as_expected]
    stories = counted(len(results), "story").replace("storys", "stories")
    if not failed:
        yield Text(f"{stories} in {seconds:.0f}s, all as expected.", style="bold green")
    for one in failed:
        title = f"story {one.story.number}, {one.story.title}, did not have the expected result:"
        failures = "; ".join(check.text for check in one.checks if not check.holds)
        yield Text(f"{title} {failures}", style="bold red")


def _keep(story: AnyStory, *, ui: bool) -> None:
    """Run the story's cluster in real time until it is interrupted."""
    hints = ["", f"Story {story.number} in real time, until Ctrl-C. In another terminal, try:"]
    hints += [f"  {typed(line)}" for line in story.commands]
    spec = read_cluster(story.cluster)
    if any(one.at > SOON for one in spec.workloads):
        hints.append(f"Workloads that start later in the story start after {SOON:.0f}s here.")
    wish = ClusterRequest(sooner(spec), LabDaemons(STORY_DAEMONS), hints=[*hints, ""], ui=ui)
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        runner.run(run_live(wish))


def sooner(spec: ClusterSpec) -> ClusterSpec:
    """Return the cluster with workloads that start within SOON seconds."""
    workloads = tuple(replace(one, at=min(one.at, SOON)) for one in spec.workloads)
    return replace(spec, workloads=workloads)
