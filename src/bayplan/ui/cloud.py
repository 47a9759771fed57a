"""Asking a cloud for its groups, now and then: sizes, bounds, prices, and what is on its way."""

from __future__ import annotations

import logging
from datetime import timedelta

from bayplan.base.clock import Clock
from bayplan.nodegroups import (
    InstanceState,
    NodeGroup,
    NodeGroupError,
    NodeRef,
    Provider,
    TemplateNodeInfo,
)
from bayplan.ui.page import Page
from bayplan.ui.picture.groups import GroupFacts

log = logging.getLogger(__name__)
EVERY = 2.0
"""Seconds from one round of questions to the next."""
SOURCE = "cloud"


async def poll_cloud(provider: Provider, page: Page) -> None:
    """Keep the page's groups as the cloud has them."""
    while True:
        try:
            facts = [await _facts(provider, one, page.clock) for one in await provider.groups()]
        except NodeGroupError as error:
            log.warning("the cloud could not be asked for its groups: %s", error)
        else:
            if page.picture.groups.say(SOURCE, facts):
                page.picture.all_nodes()
        await page.clock.sleep(EVERY)


async def _facts(provider: Provider, group: NodeGroup, clock: Clock) -> GroupFacts:
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
    """Of a node, an hour; None if nobody can say."""
    if template is None:
        return None
    now = clock.now()
    try:
        return await provider.node_price(NodeRef.of(template.node), now, now + timedelta(hours=1))
    except NodeGroupError:
        return None
