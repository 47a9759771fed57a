"""Which open volumes of a class each node can reach, as one small integer by slot.

Nodes that reach the same sites have the same code, so what can be served there is computed once for
each code. Local volumes give each node its own; volumes that any node
can reach give all nodes one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from bayplan.fit.state.columns import IntArray
from bayplan.fit.state.placed_pods import PlacedPods
from bayplan.fit.volumes.available_volumes import NODE_NAME, AvailableVolumes, Site


class ReachableVolumes:
    """The sites in reach, by code, and the code of each slot."""

    def __init__(self, cluster: PlacedPods, volumes: AvailableVolumes) -> None:
        self._cluster = cluster
        self.volumes = volumes
        self._reset()

    def codes(self) -> IntArray:
        """The code of each slot, now."""
        self._refresh()
        return self._codes

    def with_site(self, site: Site) -> Iterable[int]:
        """The codes of nodes that reach a site."""
        return self._with_site.get(site, ())

    def _reset(self) -> None:
        self.sites: list[tuple[Site, ...]] = [()]
        """What nodes of a code reach; code 0 is for slots without a node, too."""
        self._code_of: dict[tuple[Site, ...], int] = {(): 0}
        self._with_site: dict[Site, list[int]] = {}
        self._seen: set[Site] = set()
        self._codes: IntArray = np.zeros(self._cluster.slots.capacity, dtype=np.int64)
        self._epoch = self.volumes.epoch
        self._node_cursor = self._site_cursor = -1
        self.generation = object()
        """Another one whenever codes are given out anew."""

    def _refresh(self) -> None:
        capacity = self._cluster.slots.capacity
        crowded = len(self.sites) > 2 * capacity + 2
        if crowded or len(self._codes) != capacity or self._epoch != self.volumes.epoch:
            self._reset()
        for slot in self._stale_slots():
            node = self._cluster.nodes[slot]
            self._codes[slot] = self._code(self.volumes.sites_for(node)) if node else 0
        self._node_cursor = self._cluster.node_changes.end
        self._site_cursor = self.volumes.changes.end

    def _stale_slots(self) -> Iterator[int]:
        changed = self._cluster.node_changes.after(self._node_cursor)
        sites = self.volumes.changes.after(self._site_cursor)
        if changed is None or sites is None:
            yield from self._cluster.slots.by_name.values()
            return
        yield from changed
        for site in sites:
            if site not in self._seen:
                self._seen.add(site)
                yield from self._slots_near(site)

    def _slots_near(self, site: Site) -> Iterator[int]:
        """The slots whose nodes may reach a site."""
        slots = self._cluster.slots.by_name
        if site.hooks is None:
            yield from slots.values()
        for key, value in site.hooks or ():
            if key != NODE_NAME:
                yield from self._cluster.topology(key).slots_of(value)
            elif value in slots:
                yield slots[value]

    def _code(self, sites: tuple[Site, ...]) -> int:
        code = self._code_of.get(sites)
        if code is None:
            code = self._code_of[sites] = len(self.sites)
            self.sites.append(sites)
            for site in sites:
                self._with_site.setdefault(site, []).append(code)
        return code
