"""Stories 5 and 8 of queues, the same over HTTPS, in virtual time, and on any cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.client import Client
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.lab import VirtualLab
from tests.scheduler.batch import queue_stories

pytestmark = pytest.mark.whole


NOBODY = parse_cluster(b"seed: 1\n", "empty", Path())
STORIES = {
    "queue says not yet": queue_stories.queue_says_not_yet,
    "everything off": queue_stories.everything_off,
    "gang whole or not at all": queue_stories.gang_whole_or_not_at_all,
}


@pytest.mark.parametrize("story", STORIES)
async def test_over_https(story: str, client: Client, namespace: str) -> None:
    await STORIES[story](client, namespace)


@pytest.mark.virtual
@pytest.mark.parametrize("story", STORIES)
async def test_in_virtual_time(story: str) -> None:
    async with VirtualLab(NOBODY) as lab:
        await STORIES[story](lab.client(), "default")
