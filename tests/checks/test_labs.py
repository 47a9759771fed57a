"""Simulated clusters that are served well are found healthy, and what is wrong in a story is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.checks import CheckedCluster, check
from bayplan.embedded.simulation.clusterfile import ClusterSpec, parse_cluster
from bayplan.kube import codec
from bayplan.lab import VirtualLab
from bayplan.lab.daemons import DAEMON_NAMES, LabDaemons, prepare_daemons
from bayplan.lab.virtual import run_virtually
from bayplan.observe.permissions import ALL_KINDS
from bayplan.observe.reader import read_once

pytestmark = pytest.mark.whole


STORIES = Path(__file__).parents[2] / "examples" / "stories"
CREW = LabDaemons(frozenset(DAEMON_NAMES))
IN_PROCESS = {"WebhookWithoutService"}
"""A webhook in virtual time is of the same process, and answers without a service."""


def story(number: int) -> ClusterSpec:
    (path,) = STORIES.glob(f"{number}-*.yaml")
    return parse_cluster(path.read_bytes(), str(path), path.parent)


async def _codes(spec: ClusterSpec, minutes: tuple[int, ...]) -> list[set[str]]:
    aboard = prepare_daemons(CREW, spec, lambda: lab.simulation.provider)
    lab = VirtualLab(aboard.spec, aboard.daemons, webhooks=aboard.webhooks)
    told = []
    async with lab:
        client = lab.client()
        for minute in minutes:
            await lab.run(until=60 * minute)
            loaded = await read_once(client, ALL_KINDS)
            read = frozenset(codec.KINDS[name].type for name in loaded.read or ())
            version = (await client.version()).git_version
            subject = CheckedCluster(
                loaded.objects, client.clock.now(), read=read, server_version=version
            )
            report = check(subject)
            assert report.skipped == ()
            told.append({one.kind.code for one in report.findings} - IN_PROCESS)
    return told


def looked_at(number: int, *minutes: int) -> Iterator[set[str]]:
    yield from run_virtually(_codes(story(number), minutes))


@pytest.mark.parametrize("number", [1, 2, 3, 6])
def test_a_cluster_that_is_served_is_healthy(number: int) -> None:
    assert list(looked_at(number, 30)) == [set()]


def test_a_driver_that_never_came_is_found_and_then_replaced() -> None:
    early, late = looked_at(4, 10, 60)
    assert "NodeWithoutDriver" in early
    assert late == set()


def test_a_group_that_its_queue_cannot_hold_is_found() -> None:
    (told,) = looked_at(5, 10)
    assert told == {"QueueNeverAdmits", "PodsWaitForQueue"}
