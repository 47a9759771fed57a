"""Polls a cloud provider for its node groups: sizes, limits, prices and upcoming nodes."""

from __future__ import annotations

import logging
from datetime import timedelta

from bayplan.base.clock import Clock
from bayplan.nodegroups import (
    CloudNodeGroup,
    InstanceState,
    NodeGroupError,
    NodeRef,
    Provider,
    TemplateNodeInfo,
)
from bayplan.ui.page import ClusterPage
from bayplan.ui.picture.groups import GroupFacts

log = logging.getLogger(__name__)
POLL_SECONDS = 2.0
"""Seconds between two polls."""
SOURCE = "cloud"


async def poll_cloud(provider: Provider, page: ClusterPage) -> None:
    """Keep the node groups of the page up to date."""
    while True:
        try:
            facts = [await _facts(provider, one, page.clock) for one in await provider.groups()]
        except NodeGroupError as error:
            log.warning("failed to read the node groups of the cloud: %s", error)
        else:
            if page.picture.groups.update(SOURCE, facts):
                page.picture.all_nodes()
        await page.clock.sleep(POLL_SECONDS)


async def _facts(provider: Provider, group: CloudNodeGroup, clock: Clock) -> GroupFacts:
    template = await _template(provider, group.id)
    instances = await provider.instances(group.id)
    return GroupFacts(
        group.id,
        SOURCE,
        min=group.min_size,
        max=group.max_size,
        target=await provider.target_size(group.id),
        price=await _price(provider, template, clock),
        template=template,
        instances={one.provider_id: one.state is InstanceState.CREATING for one in instances},
    )


async def _template(provider: Provider, group: str) -> TemplateNodeInfo | None:
    try:
        return await provider.template(group)
    except NodeGroupError:
        return None


async def _price(
    provider: Provider, template: TemplateNodeInfo | None, clock: Clock
) -> float | None:
    """Return the price of a node an hour; None if it is unknown."""
    if template is None:
        return None
    now = clock.now()
    try:
        return await provider.node_price(NodeRef.of(template.node), now, now + timedelta(hours=1))
    except NodeGroupError:
        return None
